import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

interface Pair {
  readonly key: string
  readonly cert: string
}

let made: Pair | undefined

/**
 * A key and a certificate for `localhost`, made once a process. Clients with `sslmode=require` encrypt and do not
 * verify. Written out by hand because Node can read certificates but not make them, and openssl may be absent.
 */
export function selfSigned(): Pair {
  made ??= make()
  return made
}

function make(): Pair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  return {
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    cert: certificate(privateKey, publicKey),
  }
}

const ECDSA_WITH_SHA256 = '2a8648ce3d040302'
const COMMON_NAME = '550403'

function certificate(privateKey: KeyObject, publicKey: KeyObject): string {
  const algorithm = sequence(der(0x06, Buffer.from(ECDSA_WITH_SHA256, 'hex')))
  const commonName = sequence(der(0x06, Buffer.from(COMMON_NAME, 'hex')), der(0x0c, Buffer.from('localhost')))
  const name = sequence(der(0x31, commonName))
  // The first bit of an INTEGER is its sign.
  const serial = der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(8)]))
  const validity = sequence(der(0x17, Buffer.from('200101000000Z')), der(0x17, Buffer.from('491231235959Z')))
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(serial, algorithm, name, validity, name, subjectKey)
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]))
  const base64 = sequence(body, algorithm, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

/** Tag, length, value: a length above 127 is preceded by the number of its bytes. */
function der(tag: number, value: Buffer): Buffer {
  if (value.length < 128) return Buffer.concat([Buffer.from([tag, value.length]), value])
  const hex = value.length.toString(16)
  const length = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, value])
}
