// What `stet check` is told of its own repository.
export default {
  check: {
    // The bad examples of its rules, and texts of tests.
    ignore: ['src/check/rules/**', 'test/**', 'bench/**'],
    // Made by each attempt and dropped at its commit, whatever they are called in a statement's text.
    stagingTables: ['*differenceColumns*', '*DIFFERENCE*', '*EXISTING*', '*WRITTEN*', '*STAGE*'],
    // What a person did, a row for each deed.
    logTables: ['*.event'],
  },
}
