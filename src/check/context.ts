/**
 * Where code runs decides whether a plain insert is a fault: in a task that is retried it doubles rows, in a request
 * handler it is the one thing the user asked for, and a migration runs once.
 */
import type { HostFacts, HostFunction } from './languages/host.ts'

export type Context = 'task' | 'script' | 'unknown' | 'request' | 'migration' | 'seed' | 'test'

const TEST_PATH =
  /(?:^|\/)(?:(?!ab_|a_b_)\w+_tests?|tests?|__tests__|spec|specs|testing|fixtures?|testdata|test_data|test-data|mocks?|__mocks__|e2e|integration_tests|unit_tests)\/|(?:^|\/)(?:test_[^/]+|[^/]+_test|conftest)\.py$|(?:^|\/)(?:mock_[^/]+|[^/]+_mocks?|[^/]+__test)\.(?:sql|py|[jt]s)$|\.(?:test|spec|stories)\.[cm]?[jt]sx?$/i
const MIGRATION_PATH =
  /(?:^|\/)(?:migrations?|migrate|alembic|flyway|liquibase|changelogs?|schema_migrations|versions|sqitch|deploy|revert)\/|(?:^|\/)[vur]\d+(?:[._]\d+)*__[^/]*\.sql$|(?:^|\/)\d{8,14}[_-][^/]*\.(?:sql|js|ts|py)$|\.(?:up|down)\.sql$|(?:^|\/)\d{3,5}[_-][^/]*\.up\.sql$/i
const SEED_PATH =
  /(?:^|\/)(?:seeds?|seeders?|bootstrap|demo|samples?|sample[_-]data|playground|examples?|tutorials?|docs?|exercises?|notebooks?)\/|(?:^|\/)(?:seeds?|init|sample[_-]?data|insert[_-]?data)\.(?:sql|ts|js|py)$/i
const TASK_PATH =
  /(?:^|\/)(?:dags?|etl|elt|jobs?|tasks?|pipelines?|flows?|loaders?|ingest(?:ion|ers?)?|cron(?:jobs?)?|workers?|batch|extract(?:ors?)?|loads?|sync|importers?|import|scheduled|queries|transforms?|marts?|warehouse|dwh|scripts?|data|operators|plugins|spark|lambdas?|handlers|hql|oozie)\//i
const TASK_IMPORT =
  /\b(?:airflow|prefect|dagster|luigi|pyspark|kedro|mage_ai|dlt|metaflow|celery|bull|bullmq|bee-queue|agenda|node-schedule|kafkajs|amqplib|cron|inngest|temporalio|@temporalio|node-cron|pg-boss|graphile-worker|@aws-sdk\/client-sqs|apache_beam|singer|aws-lambda|awsglue|great_expectations|dbt|pandas|polars|duckdb|snowflake|google\.cloud|bigquery|psycopg2|pyathena|trigger\.dev)\b/
const REQUEST_IMPORT =
  /\b(?:express|fastify|koa|hapi|@nestjs\/common|next|next\/server|flask|fastapi|starlette|django|rest_framework|aiohttp\.web|sanic|tornado|bottle|falcon|graphql|apollo-server|@trpc\/server|hono|discord|discord\.js|telegram|aiogram|streamlit|react|vue|svelte)\b/
const REQUEST_DECORATOR =
  /@(?:\w+\.)*(?:route|get|post|put|patch|delete|websocket|mutation|query|api_view|action|Get|Post|Put|Patch|Delete|Mutation|Query|command|callback)\s*\(/
const TASK_DECORATOR =
  /@(?:\w+\.)*(?:task|asset|multi_asset|op|job|flow|shared_task|dag|step|transform|resource|model|cron|scheduled|on_schedule)\b/i
const REQUEST_PATH =
  /(?:^|\/)(?:api|apis|routes?|routers?|controllers?|views?|pages|app\/api|resolvers?|graphql|server|servers|backend|web|webapp|frontend|components|middleware|endpoints?|rest|bots?|ui|admin|auth|sessions?|services?|models?|repositories|repository|dao|stores?|orm|entities)\//i

const REQUEST_FILE =
  /(?:^|\/)(?:views?|forms?|serializers?|admin|urls|schema|resolvers?|controllers?|routes?|routers?)\.[cm]?[jt]s$|(?:^|\/)(?:views?|forms?|serializers?|admin|urls|viewsets?|api)\.py$/i

export function contextOfPath(path: string): Context {
  if (TEST_PATH.test(path)) return 'test'
  if (MIGRATION_PATH.test(path)) return 'migration'
  if (SEED_PATH.test(path)) return 'seed'
  if (REQUEST_PATH.test(path)) return 'request'
  if (TASK_PATH.test(path)) return 'task'
  return 'unknown'
}

/** What the repository is for: with a scheduler or dbt in it, code that shows no other sign is taken for a load. */
export type RepositoryKind = 'pipeline' | 'application' | 'unknown'

export interface RepositorySigns {
  pipelines: number
  applications: number
}

export function countSigns(path: string, text: string, signs: RepositorySigns): void {
  if (/dbt_project\.ya?ml$|(?:^|\/)dags\//.test(path)) signs.pipelines += 1
  if (/\.(?:py|[cm]?[jt]sx?)$/.test(path)) {
    const head = text.slice(0, 3000)
    if (/\b(?:from|import)\s+(?:airflow|prefect|dagster|luigi|pyspark|awsglue|apache_beam|dlt)\b/.test(head))
      signs.pipelines += 1
    if (
      /\b(?:from|import)\s+(?:flask|fastapi|django|rest_framework|starlette|sanic)\b|from ['"](?:express|fastify|koa|@nestjs\/\w+|next(?:\/\w+)?|react|hono|discord\.js)['"]|require\(['"](?:express|fastify|koa|discord\.js)['"]\)/.test(
        head,
      )
    ) {
      signs.applications += 1
    }
  }
}

export function repositoryKind({ pipelines, applications }: RepositorySigns): RepositoryKind {
  if (pipelines > 0 && pipelines >= applications) return 'pipeline'
  return applications > 0 ? 'application' : 'unknown'
}

/** The context of a place in a host file; the nearest sign wins: decorator, parameters, imports, path. */
export function contextOfHost(
  path: string,
  facts: HostFacts,
  fn: HostFunction | undefined,
  kind: RepositoryKind,
): Context {
  const byPath = contextOfPath(path)
  if (byPath === 'test' || byPath === 'migration') return byPath
  for (let at = fn; at !== undefined; at = at.parent) {
    if (TASK_DECORATOR.test(at.decorators)) return 'task'
    if (REQUEST_DECORATOR.test(at.decorators)) return 'request'
    const parameters = at.parameters.join(' ').toLowerCase()
    if (/\b(?:req|request|res|response|ctx|reply|interaction|message|msg)\b/.test(parameters))
      return 'request'
    if (
      /\b(?:event context|ti|task_instance|kwargs|data_interval_start|execution_date|logical_date)\b/.test(
        parameters,
      )
    )
      return 'task'
  }
  if (byPath === 'seed') return 'seed'
  if (REQUEST_FILE.test(path)) return 'request'
  if (TASK_IMPORT.test(facts.imports)) return 'task'
  if (REQUEST_IMPORT.test(facts.imports)) return 'request'
  if (byPath === 'task') return 'task'
  if (facts.language === 'python' && /__name__\s*==\s*['"]__main__['"]/.test(facts.text)) return 'script'
  if (byPath === 'request') return kind === 'pipeline' ? 'unknown' : 'request'
  return kind === 'pipeline' ? 'script' : 'unknown'
}

export function contextOfSqlFile(path: string, kind: RepositoryKind): Context {
  const byPath = contextOfPath(path)
  if (byPath === 'request' || byPath === 'unknown') return kind === 'application' ? 'unknown' : 'script'
  return byPath
}

/** Code of which a second run is the ordinary case. */
export function isRerun(context: Context): boolean {
  return context === 'task' || context === 'script'
}
