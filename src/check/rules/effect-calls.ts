/** Calls that reach people or other systems: mail, chat, text messages, payments. */
import type { HostAssignment, HostCall, HostFacts } from '../languages/host.ts'

const MAIL =
  /^(?:send_email|sendmail|send_mail|sendMail|sendEmail|send_message|send_templated_email|SendEmailCommand|EmailMessage\.send|messages\.create|sendSMS|send_sms|chat_postMessage|postMessage|send_slack\w*|sendSlack\w*|slack_\w*(?:send|post|notify|alert)\w*|post_to_slack|postToSlack|sendDiscord\w*|sendTelegram\w*|charges\.create|paymentIntents\.create|refunds\.create|transfers\.create|payouts\.create)$/
const EFFECT_URL =
  /hooks\.slack\.com|discord(?:app)?\.com\/api\/webhooks|slack\w*(?:webhook|hook|url|alert)|slack\w*[\w.]*webhook|webhook|api\.sendgrid|api\.mailgun|api\.twilio|api\.stripe|telegram/i

export interface EffectCall {
  readonly call: HostCall
  readonly what: string
  /** The request: the call, or the options that are handed to it by a variable. */
  readonly start: number
  readonly end: number
}

export function effectCalls(host: HostFacts): EffectCall[] {
  const found: EffectCall[] = []
  for (const call of host.calls) {
    const what = kindOf(call, host)
    if (what === undefined) continue
    const given = call.args.length === 1 ? givenTo(call, host)[0] : undefined
    const options =
      given !== undefined && /^(?:object|dictionary)$/.test(given.value.type) ? given : undefined
    found.push({ call, what, start: options?.start ?? call.start, end: options?.value.end ?? call.end })
  }
  return found
}

function kindOf(call: HostCall, host: HostFacts): string | undefined {
  const two = call.callee.split('.').slice(-2).join('.')
  if (
    /stripe|adyen|braintree|paypal/i.test(call.receiver) &&
    /\.?(?:create|capture|refund|charge)$/i.test(call.name)
  )
    return 'payment'
  if (MAIL.test(call.name) || MAIL.test(two)) {
    if (call.name === 'postMessage' && !/slack|chat/i.test(call.receiver)) return undefined
    if (call.name === 'send_message' && !/mail|smtp|slack|bot|telegram|ses|server/i.test(call.receiver))
      return undefined
    // A queue's sendMessage is work to do, not a message to a person.
    return /slack|chat|discord|telegram/i.test(call.callee)
      ? 'chat message'
      : /pay|charge|refund|transfer/i.test(call.callee)
        ? 'payment'
        : 'mail'
  }
  if (call.name === 'sendMessage' && /webhook/i.test(host.source(call.node))) return 'chat message'
  if (/^(?:sendMessage)$/.test(call.name) && /bot|discord|telegram|slack/i.test(call.receiver))
    return 'chat message'
  const posts =
    /^(?:requests|session|httpx|axios|got|http|client|self\.session|ky|superagent)\.post$/.test(
      call.callee,
    ) ||
    (/^(?:fetch|rp|request|axios|got)$/.test(call.callee) && isPost(call, host))
  if (!posts) return undefined
  const source = sourceWithNames(call, host)
  return EFFECT_URL.test(source)
    ? /slack|discord|telegram/i.test(source)
      ? 'chat message'
      : 'request'
    : undefined
}

function isPost(call: HostCall, host: HostFacts): boolean {
  return /method\s*:\s*['"`]POST/i.test(sourceWithNames(call, host))
}

/** The call with its options object, where that is a variable. */
function sourceWithNames(call: HostCall, host: HostFacts): string {
  const own = host.source(call.node).slice(0, 600)
  return [own, ...givenTo(call, host).map((one) => host.source(one.value).slice(0, 600))].join(' ')
}

/** The assignments of the variables among the arguments. */
export function givenTo(call: HostCall, host: HostFacts): HostAssignment[] {
  return call.args
    .filter((argument) => argument.type === 'identifier')
    .flatMap(
      (argument) =>
        host.assignments
          .filter((one) => one.name === host.source(argument) && one.start < call.start)
          .at(-1) ?? [],
    )
}
