/** Which of a provider's machines are which of our instances. */
import type { InstanceId } from '../../model/ids.ts';
import type { Instance } from '../../model/instance.ts';

/** A machine as its provider lists it; what matters here. */
interface Named {
  label: string;
  handle: string;
  phase: string;
}

export interface Matched<Machine> {
  of: Map<InstanceId, Machine>;
  /** Ours by their name, but of no instance that has not ended. */
  unknown: Machine[];
}

/**
 * By label where machines carry one. Where they cannot, by handle, and then any intent without a
 * machine takes any machine without an intent, the oldest first.
 */
export function match<Machine extends Named>(
  instances: readonly Instance[],
  machines: readonly Machine[],
  labels: boolean,
): Matched<Machine> {
  const of = new Map<InstanceId, Machine>();
  const unknown: Machine[] = [];
  const byKey = new Map<string, Instance>();
  for (const instance of instances) {
    const key = labels ? instance.id : instance.handle;
    if (key !== '') byKey.set(key, instance);
  }
  for (const machine of machines) {
    const instance = byKey.get(labels ? machine.label : machine.handle);
    const rival = instance && of.get(instance.id);
    if (!instance) unknown.push(machine);
    else if (!rival) of.set(instance.id, machine);
    else if (isRather(machine, rival, instance)) {
      of.set(instance.id, machine);
      unknown.push(rival);
    } else unknown.push(machine);
  }
  return labels ? { of, unknown } : adopt(instances, { of, unknown });
}

/**
 * Of two with the same label (a launch that was taken twice) the one that lives, else the one we
 * know. Workers may have come from either: while one lives, the end of the other proves nothing.
 */
function isRather(machine: Named, rival: Named, { handle }: Instance): boolean {
  const over = rival.phase === 'gone';
  if (over !== (machine.phase === 'gone')) return over;
  return handle !== '' && machine.handle === handle;
}

function adopt<Machine extends Named>(
  instances: readonly Instance[],
  { of, unknown }: Matched<Machine>,
): Matched<Machine> {
  const open = instances.filter(
    ({ id, handle, state }) => !of.has(id) && handle === '' && state !== 'DESTROYING',
  );
  const left: Machine[] = [];
  for (const machine of unknown) {
    const instance = machine.phase === 'gone' ? undefined : open.shift();
    if (instance) of.set(instance.id, machine);
    else left.push(machine);
  }
  return { of, unknown: left };
}
