import { defineConfig } from 'vitest/config'
import { plantFault } from './test/support/plant.ts'
import { PLANTED_FAULTS } from './test/support/planted-faults.ts'

export default defineConfig({
  plugins: plantFault(PLANTED_FAULTS.find((fault) => fault.name === process.env.STET_PLANT)),
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: more workers only wait for one another.
    maxWorkers: 2,
    pool: 'forks',
  },
})
