/** Looks at machines that run and have not joined, where their provider can. */
import type { Clock } from '../../lib/clock.ts';
import type { InstanceId } from '../../model/ids.ts';
import type { Instance } from '../../model/instance.ts';
import type { Probe, Provider } from '../../providers/contract.ts';
import { instancesOf } from '../../state/instances.ts';
import type { State } from '../../state/state.ts';
import type { Mutate } from '../mutate.ts';
import { withinTime } from './calls.ts';

/** Between two looks at the same machine. */
const PROBE_AGAIN_MS = 15_000;
/** Of one pool in one step: the rest have their turn in the next. */
const PROBED_AT_ONCE = 8;

interface ProbingOptions {
  pool: string;
  provider: Provider;
  state: State;
  mutate: Mutate;
  clock: Clock;
}

export function createProbing(options: ProbingOptions): () => Promise<void> {
  const { pool, provider, state, mutate, clock } = options;
  const probed = new Map<InstanceId, number>();

  return async () => {
    if (provider.probe === undefined) return;
    const due = instancesOf(state, pool)
      .map(({ instance }) => instance)
      .filter((instance) => isDue(instance));
    for (const id of probed.keys()) if (!state.machines.instances.has(id)) probed.delete(id);
    await Promise.all(due.slice(0, PROBED_AT_ONCE).map((instance) => look(instance)));
  };

  function isDue({ id, state: at, handle }: Instance): boolean {
    if ((at !== 'BOOTING' && at !== 'PROBING') || handle === '') return false;
    return clock.bootMs() - (probed.get(id) ?? -Infinity) >= PROBE_AGAIN_MS;
  }

  async function look({ id, handle }: Instance): Promise<void> {
    probed.set(id, clock.bootMs());
    const ask = async (): Promise<Probe> =>
      (await provider.probe?.({ label: id, handle })) ?? { kind: 'unknown', reason: '' };
    const verdict = await withinTime(
      clock,
      ask,
      (reason) => ({ kind: 'unknown', reason }) as const,
    );
    const { reason } = verdict;
    if (verdict.kind === 'unknown') return;
    if (verdict.kind !== 'failed') {
      mutate({ kind: 'observe-instances', instances: [{ instance: id, move: 'probe', reason }] });
      return;
    }
    const { failure } = verdict;
    mutate({ kind: 'destroy-instance', instance: id, failure, reason, by: '', tenant: '' });
  }
}
