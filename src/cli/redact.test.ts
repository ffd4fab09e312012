import { expect, test } from 'vitest'
import { redact } from './redact.ts'

test.each([
  ['postgres://app:hunter2@db/shop', 'postgres://app:***@db/shop'],
  ['no route to postgresql://app:h@unt/er2@db/shop!', 'no route to postgresql://app:***@db/shop!'],
  ['postgres://app@db/shop', 'postgres://app@db/shop'],
  ['postgres://db:5432/shop', 'postgres://db:5432/shop'],
  ['host=db password=hunter2 user=app', 'host=db password=*** user=app'],
  [
    'postgres://db/shop?user=app&password=hunter2&sslmode=require',
    'postgres://db/shop?user=app&password=***&sslmode=require',
  ],
])('%s', (text, shown) => {
  expect(redact(text)).toBe(shown)
})
