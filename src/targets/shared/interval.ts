/**
 * What an interval would lose without a word, in DuckDB as in PostgreSQL: both keep whole microseconds, in whatever unit they are
 * written. A pattern that both understand, to be matched in any case.
 */
export const CUT_INTERVAL =
  '[.][0-9]{6}[0-9]*[1-9]|[.][0-9]{3}[0-9]*[1-9][0-9]* *m(illi|s)|[.][0-9]*[1-9][0-9]* *(micro|us)'
