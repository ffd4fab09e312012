/** Calls of the host language that change rows of a store without a statement in the text. */
import type { HostCall } from '../languages/host.ts'

const PYTHON =
  /^(?:executemany|execute_values|execute_batch|copy_from|copy_expert|to_sql|to_gbq|write_database|insert_rows|insert_rows_json|load_table_from_(?:dataframe|uri|file|json)|write_pandas|saveAsTable|insertInto|insert_many|insert_one|bulk_write|bulk_insert_mappings|bulk_save_objects|add_all|bulk_create|bulk_update|put_item|batch_write_item|replace_one|upsert)$/
const TYPESCRIPT =
  /^(?:createMany|insertMany|insertOne|bulkWrite|bulkCreate|upsert|updateMany|deleteMany|\$executeRaw|\$executeRawUnsafe|batchWrite|BatchWriteCommand|PutCommand|PutItemCommand)$/
const SESSION = /(?:^|\.)(?:conn|connection|session|cnx|con|db|postgres_conn|pg_conn|cursor|client|cur)\w*$/i

/** Whether the call itself stores or commits rows. */
export function writesRows(call: HostCall, language: 'python' | 'typescript'): boolean {
  // A message in a queue is work that is stored.
  if (/^(?:sendMessage|send_message)$/.test(call.name) && call.named.has('QueueUrl')) return true
  if (language === 'typescript') return TYPESCRIPT.test(call.name)
  return PYTHON.test(call.name) || (call.name === 'commit' && SESSION.test(call.receiver))
}
