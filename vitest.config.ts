import { defineConfig } from 'vitest/config';

/**
 * Tests with real processes race with whatever else the machine does. In CI one that fails is tried
 * once more, and the report says so; it must then pass.
 */
const retry = process.env['CI'] === 'true' ? 1 : 0;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'tools/**/*.test.ts'],
          pool: 'threads',
          isolate: false,
          // Of a machine that has other things to do.
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/**/*.test.ts'],
          fileParallelism: false,
          retry,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
