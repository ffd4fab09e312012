import { isRerun } from '../context.ts'
import type { Report } from '../finding.ts'
import type { Rule } from '../rule.ts'
import { textBefore } from '../sequence.ts'

const KNOWN =
  /api\.stripe\.com|checkout-test\.adyen|adyen\.com|api\.sendgrid\.com|api\.twilio\.com|api\.airtable\.com|api\.mailgun\.net|api\.paypal\.com|api\.squareup\.com|api\.braintree/i
const STRIPE_CREATE =
  /^(?:stripe|this\.stripe|self\.stripe|client\.stripe)\.(?:charges|paymentIntents|refunds|transfers|payouts|invoices|subscriptions|customers|Charge|PaymentIntent|Refund|Transfer|Payout|Invoice)\.(?:create|capture)$/

export const postNoKey: Rule = {
  id: 'post-no-key',
  title: 'Send an idempotency key with a request that does something',
  anomaly: 'doubled',
  tier: 1,
  fix: 'suggestion',
  problem:
    'When the answer is lost, the request was carried out and nobody knows. The retry is a new request to the other side: a second charge, a second mail.',
  advice:
    'Send a key made of the source data; the other side answers the second request with the first answer.',
  safeForms: [
    {
      for: 'Stripe',
      code: 'await stripe.charges.create(body, { idempotencyKey: sha256(`charge|${order.no}`) })',
    },
    { for: 'HTTP', code: 'requests.post(url, json=body, headers={"Idempotency-Key": key_of(order_no)})' },
  ],
  prove: '`stet prove` drops the answer of the call and lets the job retry (DOUBLED).',
  limits: 'Only services that are known to take such a key are judged; other POSTs may only read.',
  bad: [
    {
      why: 'a charge without a key',
      path: 'jobs/pay.ts',
      lines: [2],
      code: 'import { Queue } from "bullmq";\nexport const f = (o: { cents: number }) => stripe.paymentIntents.create({ amount: o.cents, currency: "eur" });\n',
    },
    {
      why: 'by HTTP',
      path: 'jobs/mail.py',
      lines: [3],
      code: 'import requests, pandas\ndef f(body):\n    requests.post("https://api.sendgrid.com/v3/mail/send", json=body)\n',
    },
  ],
  fine: [
    {
      why: 'a key of the data',
      path: 'jobs/pay.ts',
      lines: [],
      code: 'import { Queue } from "bullmq";\nexport const f = (o: { no: string }) => stripe.charges.create({ amount: 1 }, { idempotencyKey: o.no });\n',
    },
    {
      why: 'a model that only answers',
      path: 'jobs/predict.ts',
      lines: [],
      code: 'import { Queue } from "bullmq";\nexport const f = (x: number[]) => axios.post("https://model.example/predictions", x);\n',
    },
    {
      why: 'a request handler',
      path: 'src/api/pay.ts',
      lines: [],
      code: 'import express from "express";\nexport const pay = (req, res) => stripe.paymentIntents.create({ amount: req.body.cents });\n',
    },
  ],
  *check(file): Iterable<Report> {
    const { host } = file
    if (host === undefined || file.context === 'test') return
    for (const call of host.calls) {
      if (!isRerun(file.contextOf(call.fn))) continue
      const stripe = STRIPE_CREATE.test(call.callee)
      const posts =
        /^(?:requests|httpx|session|axios|got|ky|superagent)\.post$/.test(call.callee) ||
        (/^(?:fetch|axios)$/.test(call.callee) && /method\s*:\s*['"`]POST/i.test(host.source(call.node)))
      const source = host.source(call.node)
      if (!stripe && !(posts && KNOWN.test(source))) continue
      if (/idempoten/i.test(source) || /oauth|token|search|query/i.test(source.slice(0, 160))) continue
      const around = textBefore(host, call.fn, call.start)
      if (/idempoten/i.test(around)) continue
      yield {
        start: call.start,
        end: call.end,
        message:
          'The request carries no idempotency key: sent again after a lost answer, it is carried out twice',
        class: 'unsafe',
        severity: 'warning',
        confidence: 'medium',
      }
    }
  },
}
