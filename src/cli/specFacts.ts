/** What a job asks for, in the words of the flags that asked for it. */
import type { JobView } from '../protocol/jobs.ts';
import { showConstraint } from './constraints.ts';
import { shortDuration } from './durations.ts';
import type { Fact } from './facts.ts';
import { showMoney } from './money.ts';
import { showCpus, showMemory } from './resources.ts';

type Spec = NonNullable<JobView['spec']>;

export function specFacts(spec: Spec): Fact[] {
  const { constraints } = spec.placement;
  const tests = (preferred: boolean): string =>
    constraints
      .filter((one) => one.preferred === preferred)
      .map(showConstraint)
      .join('; ');
  return [
    ['command', spec.command.map(quoted).join(' ')],
    ['directory', spec.workdir],
    ['image', spec.environment?.image ?? ''],
    ['lock file', spec.environment?.lock ?? ''],
    ['modules', spec.environment?.modules.join(' ') ?? ''],
    ['resources', showResources(spec)],
    ['constraints', tests(false)],
    ['prefers', tests(true)],
    ['placement', showPlacement(spec)],
    ['after', spec.after.map(({ job, when }) => `${job}:${when}`).join(', ')],
    ['at once', spec.shape.kind === 'array' && spec.shape.limit > 0 ? `${spec.shape.limit}` : ''],
    ['time limit', spec.timeLimitMs ? shortDuration(spec.timeLimitMs) : ''],
    ['checkpoints', spec.checkpoint ? showCheckpoint(spec.checkpoint) : ''],
    ['outputs', spec.rules?.outputs.join(', ') ?? ''],
    ['kept on failure', keptFor(spec)],
    ['idle devices', idleRule(spec)],
    ['max cost', spec.maxCostMicros ? showMoney(spec.maxCostMicros) : ''],
  ];
}

function showCheckpoint({ dir, everyMs, signal, keep }: NonNullable<Spec['checkpoint']>): string {
  const asked = signal ? `, asked by ${signal}` : '';
  return `${dir || '$DROVER_CHECKPOINT_DIR'} every ${shortDuration(everyMs)}${asked}, ${keep} kept`;
}

function keptFor({ rules }: Spec): string {
  return rules?.keepOnFailureMs ? shortDuration(rules.keepOnFailureMs) : '';
}

function idleRule({ rules }: Spec): string {
  if (!rules?.idle) return '';
  const { action, belowPercent, forMs } = rules.idle;
  return `${action} when below ${belowPercent} % for ${shortDuration(forMs)}`;
}

function showResources(spec: Spec): string {
  const { cpuMillis, memoryBytes, device, ports } = spec.resources;
  const parts = [`${showCpus(cpuMillis)} cpus`];
  if (memoryBytes > 0) parts.push(showMemory(memoryBytes));
  if (device) {
    const amount = device.share < 1000 ? `${device.share / 1000}` : `${device.count}`;
    const models = device.models.length > 0 ? ` ${device.models.join(' or ')}` : '';
    const memory = device.memoryBytes > 0 ? ` of ${showMemory(device.memoryBytes)} or more` : '';
    parts.push(`${amount} ${device.kind}${models}${memory}`);
  }
  if (ports > 0) parts.push(`${ports} ports`);
  return parts.join(', ');
}

function showPlacement({ placement }: Spec): string {
  const { arrangement, exclusive, antiAffinity, locality, interruptible, trust } = placement;
  const parts: string[] = [];
  if (arrangement === 'spread') parts.push('spread');
  if (exclusive) parts.push('exclusive');
  if (antiAffinity) parts.push(`apart from others of ${antiAffinity}`);
  if (locality) parts.push(`within one ${locality}`);
  if (interruptible) parts.push('interruptible');
  if (trust === 'restricted') parts.push('never on machines of strangers');
  return parts.join(', ');
}

/** As it could be typed again. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
