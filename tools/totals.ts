/** A vitest reporter whose last line is the count CI reads: `N passed, N failed[, N skipped]`. */
import type { Reporter, TestModule } from 'vitest/node';

export interface Totals {
  passed: number;
  failed: number;
  skipped: number;
}

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const totals = count(modules, errors.length);
    if (totals.passed + totals.failed === 0) {
      process.exitCode = 1;
      console.log('\nNo test ran: that is a failure\n0 passed, 1 failed');
      return;
    }
    if (totals.failed > 0) process.exitCode = 1;
    console.log(`\n${describeTotals(totals)}`);
  }
}

/** A file that could not be loaded and an error outside any test each count as one failure. */
export function count(modules: readonly TestModule[], strayErrors: number): Totals {
  const totals: Totals = { passed: 0, failed: strayErrors, skipped: 0 };
  for (const module of modules) {
    totals.failed += module.errors().length;
    for (const test of module.children.allTests()) {
      const state = test.result().state;
      // A test that never finished (the run was stopped) has not passed.
      totals[state === 'pending' ? 'failed' : state]++;
    }
    for (const suite of module.children.allSuites()) totals.failed += suite.errors().length;
  }
  return totals;
}

export function describeTotals({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
