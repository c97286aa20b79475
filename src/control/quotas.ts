/** What a hard quota could never let through is refused at once; all else may wait for its turn. */
import { DroverError } from '../lib/errors.ts';
import type { JobSpec } from '../model/job.ts';
import type { Principal } from '../model/token.ts';
import type { State } from '../state/state.ts';

export function checkQuotas(state: State, who: Principal, specs: readonly JobSpec[]): void {
  for (const { account, budget } of state.accounts.both(who.tenant, who.user)) {
    const limit = budget?.mode === 'hard' ? budget.deviceMillis : null;
    if (limit === null) continue;
    for (const spec of specs) {
      const wanted = devicesAtOnce(spec);
      if (wanted <= limit) continue;
      const whose = account.user === '' ? `tenant ${account.tenant}` : `user ${account.user}`;
      throw new DroverError(
        'OVER_QUOTA',
        `it needs ${wanted / 1000} devices at once, the quota of ${whose} is ${limit / 1000}`,
        { hint: 'ask for fewer devices, or see the quota with: drover budget' },
      );
    }
  }
}

/** Thousandths of devices that must be held together for it to run at all. */
function devicesAtOnce({ resources, shape }: JobSpec): number {
  const { device } = resources;
  if (!device) return 0;
  return device.count * device.share * (shape.kind === 'gang' ? shape.size : 1);
}
