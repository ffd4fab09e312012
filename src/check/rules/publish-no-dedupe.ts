import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { givenTo } from './effect-calls.ts'

export const publishNoDedupe: Rule = {
  id: 'publish-no-dedupe',
  title: 'Give a queued message an id the consumer can drop doubles by',
  anomaly: 'doubled',
  tier: 2,
  fix: 'suggestion',
  problem:
    'A run that is repeated, or a send whose answer is lost, queues the same work again. Without an id made of the data the consumer cannot tell, and does it twice.',
  advice:
    'Use a FIFO queue with MessageDeduplicationId (SQS), a key (Kafka) or a message id made of the data.',
  safeForms: [
    {
      for: 'SQS',
      code: 'await sqs.sendMessage({ QueueUrl, MessageBody, MessageGroupId: day, MessageDeduplicationId: sha256(`${day}|${adaptor}`) })',
    },
  ],
  prove: '`stet prove` counts the messages of a job that is run twice (DOUBLED).',
  limits:
    'Whether the consumer can take a message twice is not seen; in a loop it is told as a warning of low confidence, else as a hint.',
  bad: [
    {
      why: 'a message for each item without an id',
      path: 'src/handlers/fan.js',
      lines: [4],
      code: 'module.exports.handler = async () => {\n  const sqs = new SQS();\n  for (const a of adaptors) {\n    await sqs.sendMessage({ QueueUrl: process.env.Q, MessageBody: JSON.stringify({ a }) }).promise();\n  }\n};\n',
    },
    {
      why: 'a request made before the call',
      path: 'src/workers/fan.js',
      lines: [3],
      code: 'exports.fan = async (sqs, items) => {\n  for (const item of items) {\n    const request = { QueueUrl: process.env.Q, MessageBody: item }; await sqs.sendMessage(request).promise()\n  }\n}\n',
    },
  ],
  fine: [
    {
      why: 'a request made before the call, with an id of the data',
      path: 'src/workers/fan.js',
      lines: [],
      code: "exports.fan = async (sqs, items) => {\n  for (const item of items) {\n    const request = { QueueUrl: process.env.Q, MessageBody: item.body, MessageDeduplicationId: item.no, MessageGroupId: 'g' }\n    await sqs.sendMessage(request).promise()\n  }\n}\n",
    },
    {
      why: 'an id of the data',
      path: 'src/handlers/fan.js',
      lines: [],
      code: 'module.exports.handler = async () => {\n  for (const a of adaptors) await sqs.sendMessage({ QueueUrl: "q.fifo", MessageBody: a, MessageGroupId: "g", MessageDeduplicationId: a }).promise();\n};\n',
    },
    {
      why: 'a chat message',
      path: 'src/handlers/fan.js',
      lines: [],
      code: 'module.exports.handler = async (bot) => {\n  for (const a of adaptors) await bot.sendMessage(1, a);\n};\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test') return
    for (const call of host.calls) {
      if (
        !/^(?:sendMessage|SendMessageCommand|send_message|sendMessageBatch|SendMessageBatchCommand)$/.test(
          call.name,
        )
      )
        continue
      const source = [
        host.source(call.node),
        ...givenTo(call, host).map((one) => host.source(one.value)),
      ].join(' ')
      if (!/QueueUrl|queue_url/.test(source) || /Dedup|dedup|MessageGroupId/.test(source)) continue
      const request = file.contextOf(call.fn) === 'request'
      const loud = call.loop && !request
      yield {
        start: call.start,
        end: call.end,
        message:
          'The message has no id: a second run queues the same work again, and the consumer cannot tell',
        class: loud ? 'unsafe' : 'info',
        severity: loud ? 'warning' : 'info',
        confidence: 'low',
      }
    }
  },
}
