import { expect, test } from 'vitest'
import { catalogueBuilder } from '../../src/check/catalogue/index.ts'
import { readModels } from '../../src/check/catalogue/models.ts'
import { nameFromText } from '../../src/check/sql/name.ts'

/** The keys of a table as `a+b` (a `!` before a primary one, a `*` behind a generated one), and its columns that may be NULL. */
function tableOf(
  name: string,
  files: Readonly<Record<string, string>>,
): { keys: string[]; nullable: string[]; touch: boolean } | undefined {
  const catalogue = catalogueBuilder()
  for (const [path, text] of Object.entries(files))
    for (const fact of readModels(path, text)) catalogue.add(fact, path)
  const table = catalogue.build().find(nameFromText(name), 'etl/load.sql')
  return (
    table && {
      keys: table.keys
        .map(
          (key) =>
            `${key.primary ? '!' : ''}${key.columns.join('+')}${key.generated ? '*' : ''}${key.partial ? '?' : ''}`,
        )
        .sort(),
      nullable: table.columns.filter((column) => !column.notNull).map((column) => column.name),
      touch: table.touchTrigger,
    }
  )
}

const PRISMA = `
model Order {
  id        Int      @id @default(autoincrement())
  orderNo   String   @map("order_no") // no @unique here
  shop      Shop     @relation(fields: [shopId], references: [id])
  shopId    Int      @map("shop_id")
  day       DateTime?
  tags      Tag[]

  @@unique([orderNo, shopId])
  @@map("orders")
}
model Shop {
  code String @id
  mail String? @unique
}
`

test.each([
  ['orders', { keys: ['!id*', 'order_no+shop_id'], nullable: ['day'], touch: false }],
  ['Order', { keys: ['!id*', 'order_no+shop_id'], nullable: ['day'], touch: false }],
  ['Shop', { keys: ['!code', 'mail'], nullable: ['mail'], touch: false }],
])('Prisma: %s', (name, expected) => {
  expect(tableOf(name, { 'prisma/schema.prisma': PRISMA })).toEqual(expected)
})

const DJANGO = `
from django.db import models

class Base(models.Model):
    class Meta:
        abstract = True

class Play(models.Model):
    song = models.ForeignKey("Song", on_delete=models.CASCADE)
    at = models.DateTimeField(null=True)

    class Meta:
        unique_together = [("song", "at")]

class Song(models.Model):
    code = models.CharField(
        max_length=20,  # "unique=True" is not meant
        unique=True,
    )
    title = models.TextField()

    class Meta:
        db_table = "song"
        constraints = [
            models.UniqueConstraint(fields=["title"], name="one_title"),
            models.UniqueConstraint(fields=["code"], condition=models.Q(title=""), name="part"),
        ]
`

test.each([
  ['music_play', { keys: ['!id*', 'song_id+at'], nullable: ['at'], touch: false }],
  ['song', { keys: ['!id*', 'code', 'title'], nullable: [], touch: false }],
  ['music_base', undefined],
])('Django: %s', (name, expected) => {
  expect(tableOf(name, { 'music/models.py': DJANGO })).toEqual(expected)
})

test('SQLAlchemy: declarative models and tables', () => {
  const text = `
from sqlalchemy import Column, Integer, String, Table, UniqueConstraint
class Play(Base):
    __tablename__ = "play"
    __table_args__ = (UniqueConstraint("song", "at", name="u"),)
    id = Column(Integer, primary_key=True)
    song = Column(String(20), nullable=False)
    at = mapped_column(DateTime)
class Tagged(Base):
    __tablename__ = "tagged"
    song: Mapped[str] = mapped_column(primary_key=True)
    tag: Mapped[str] = mapped_column(String, primary_key=True)
tag = Table("tag", metadata, Column("name", String, unique=True), Column("note", String))
`
  const files = { 'app/models.py': text }
  expect(tableOf('play', files)).toEqual({ keys: ['!id*', 'song+at'], nullable: ['at'], touch: false })
  expect(tableOf('tagged', files)).toEqual({ keys: ['!song+tag'], nullable: [], touch: false })
  expect(tableOf('tag', files)).toEqual({ keys: ['name'], nullable: ['name', 'note'], touch: false })
})

test('Alembic: tables, and what later migrations add; a downgrade does not count', () => {
  const first = `
from alembic import op
import sqlalchemy as sa
def upgrade():
    op.create_table(
        "play",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("song", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        schema="music",
    )
def downgrade():
    op.drop_table("play")
`
  const second = `
from alembic import op
def upgrade():
    op.create_unique_constraint("one_song", "play", ["song"], schema="music")
    op.create_index("i", "play", ["at"], unique=False)
    op.add_column("play", sa.Column("at", sa.DateTime(), nullable=False))
def downgrade():
    op.create_unique_constraint("x", "play", ["at"])
`
  expect(tableOf('music.play', { 'versions/1.py': first, 'versions/2.py': second })).toEqual({
    keys: ['!id*', 'song'],
    nullable: ['song'],
    touch: false,
  })
})

test('Knex: tables, changed tables, chains over several lines', () => {
  const text = `
exports.up = async (knex) => {
  await knex.schema.createTable('orders', (table) => {
    table.increments('id')
    table
      .string('order_no')
      .notNullable()
      .unique()
    table.date('day')
    table.integer('shop').notNullable()
    table.index(['day'])
    table.timestamps(true, true)
  })
  await knex.schema.alterTable('orders', (table) => {
    table.unique(['shop', 'day'])
  })
}
exports.down = (knex) => knex.schema.createTable('orders', (table) => table.string('x').primary())
`
  expect(tableOf('orders', { 'migrations/1.js': text })).toEqual({
    keys: ['!id*', 'order_no', 'shop+day'],
    nullable: ['day', 'created_at', 'updated_at'],
    touch: false,
  })
})

test('node-pg-migrate: columns, indexes, the trigger that stamps rows, a name in a constant', () => {
  const text = `
const tableName = 'token'
exports.up = (pgm) => {
  pgm.createTable(tableName, {
    id: 'id',
    chain: { type: 'text', notNull: true },
    address: { type: 'text', notNull: true },
    note: 'text',
  })
  pgm.createIndex(tableName, ['chain', 'address'], { unique: true })
  pgm.createTrigger(tableName, 'update_updated_at', { when: 'BEFORE', operation: 'UPDATE', level: 'ROW' })
}
`
  expect(tableOf('token', { 'migrations/1.js': text })).toEqual({
    keys: ['!id*', 'chain+address'],
    nullable: ['note'],
    touch: true,
  })
})
