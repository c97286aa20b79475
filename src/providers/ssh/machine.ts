/** A host as the provider's list shows it, and as people read of it. */
import type { Machine, MachinePhase } from '../contract.ts';
import type { Course } from './course.ts';
import type { Host } from './host.ts';

/** `remembered`: the label that the core knows there, for hosts that were never reached. */
export function machinesOf(host: Host, remembered: string | undefined, drift: string[]): Machine[] {
  const { instance, silence } = host;
  const unreachable = silence ? `cannot be reached: ${silence.reason}` : '';
  if (!host.seen) {
    if (!remembered) return [];
    const reason = unreachable || 'was not looked at yet';
    return [machine(host.name, remembered, { phase: 'running', reason })];
  }
  const course = host.course();
  if (!instance || !course) return [];
  const { phase, reason, failure } = phaseOf(course);
  // Nobody knows whether it is still so; gone it must be seen to be.
  const shown = unreachable && phase === 'gone' ? 'running' : phase;
  const told = [unreachable, reason, ...drift].filter(Boolean).join('; ');
  const one = machine(host.name, instance.label, { phase: shown, reason: told });
  return [{ ...one, failure: shown === 'gone' ? failure : null }];
}

function phaseOf(course: Course): Pick<Machine, 'phase' | 'reason' | 'failure'> {
  switch (course.kind) {
    case 'running':
      return { phase: 'running', reason: '', failure: null };
    case 'ending':
      return { phase: 'ending', reason: 'its agent and attempts are being ended', failure: null };
    case 'restart':
      return { phase: 'running', reason: course.reason, failure: null };
    case 'over':
      return { phase: 'gone', reason: course.reason, failure: course.failure };
  }
}

function machine(
  host: string,
  label: string,
  { phase, reason }: { phase: MachinePhase; reason: string },
): Machine {
  return {
    ...{ label, handle: host, host, phase, reason },
    failure: null,
    startsAtMs: null,
    leftMs: null,
    // It is the same machine: work there outlives its agent.
    restarts: 0,
    // Of interest where the settings give an hour a price: the machine itself is owned.
    billed: phase === 'running' || phase === 'ending',
    priceHourMicros: null,
  };
}
