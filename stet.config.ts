// What `stet check` leaves out of its own repository: the bad examples of its rules, and texts of tests.
export default {
  check: { ignore: ['src/check/rules/**', 'test/**', 'bench/**'] },
}
