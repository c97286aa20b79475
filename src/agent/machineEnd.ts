/**
 * How an agent ends with its machine: it was told that the machine ends (`left`), nobody has
 * answered for too long (`silent`), or the controller does not want the machine (`unwanted`). It
 * stops what runs, with grace, and says when nothing is left. Calls to the controller pass through
 * here, so that they carry the notice and bring the refusal.
 */
import type { Clock, Timer } from '../lib/clock.ts';
import { DroverError } from '../lib/errors.ts';
import type { Log } from '../lib/log.ts';
import { ENDING } from '../model/health.ts';
import { AGENT_LIMITS, type SyncReply, type SyncRequest } from '../protocol/agent.ts';
import type { AgentTransport } from './agent.ts';
import type { Runtime } from './runtimes/contract.ts';
import { SuddenEnds } from './suddenEnds.ts';

export type EndKind = 'left' | 'silent' | 'unwanted';

export interface MachineEndOptions {
  transport: AgentTransport;
  runtime: Pick<Runtime, 'list' | 'stop'>;
  clock: Clock;
  log: Log;
  /** Without contact for this long it ends; 0: never. */
  selfDestructAfterMs: number;
  /** When the last acknowledged sync was sent, on the boot clock; null: none yet. */
  lastContactBootMs: () => number | null;
  /** Attempts whose output has not arrived. */
  unsent: () => number;
  /** The machine is a provider's, which may end it with all that runs there. */
  isLent?: boolean;
  /** Called once, when nothing runs here any more. */
  onOver: (kind: EndKind, reason: string) => void;
}

export interface MachineEnd {
  /** For the agent, instead of the one it was given. */
  transport: AgentTransport;
  /** The machine is about to end; whoever ends it has given notice. */
  leave(reason: string): void;
  close(): void;
}

/** How often it looks at the clock, and at what still runs. */
const LOOK_MS = 500;
/** When nothing runs, so long it waits until ends and output have arrived. */
const LAST_WORD_MS = 60_000;
/** Without notice: what was not even killed so long after its grace is not waited for. */
const KILL_LIMIT_MS = 30_000;

export function watchMachineEnd(options: MachineEndOptions): MachineEnd {
  const { transport, runtime, clock, log } = options;
  const begunBootMs = clock.bootMs();
  let ending: { kind: EndKind; reason: string; bootMs: number } | null = null;
  /** Since when nothing runs, as far as it ends. */
  let idleBootMs: number | null = null;
  const suddenEnds = new SuddenEnds(clock);
  let isTold = false;
  let isOver = false;
  let overtake: ((error: Error) => void) | null = null;
  let timer: Timer | null = clock.setTimer(LOOK_MS, look);

  function begin(kind: EndKind, reason: string): void {
    if (ending || isOver) return;
    ending = { kind, reason, bootMs: clock.bootMs() };
    log.warn({ kind, reason, attempts: runtime.list().length }, 'this machine ends: stopping');
    // A parked sync would keep the notice for seconds; the agent sends the next one at once.
    overtake?.(new DroverError('STALE', 'the notice goes first'));
    stopAll(kind);
  }

  function look(): void {
    timer = clock.setTimer(LOOK_MS, look);
    const nowBootMs = clock.bootMs();
    if (!ending) {
      const { selfDestructAfterMs: afterMs } = options;
      const silentMs = nowBootMs - Math.max(begunBootMs, options.lastContactBootMs() ?? 0);
      if (afterMs > 0 && silentMs >= afterMs) begin('silent', `no contact for ${silentMs} ms`);
    }
    if (!ending || !isFinished(ending, nowBootMs)) return;
    isOver = true;
    timer.cancel();
    options.onOver(ending.kind, ending.reason);
  }

  /** Also what an answer that was on its way has started since. */
  function stopAll(kind: EndKind): number {
    const running = runtime.list().filter(({ observation: { state } }) => state !== 'ENDED');
    for (const { observation, graceMs } of running) {
      if (observation.state === 'STOPPING') continue;
      const cause = kind === 'left' ? 'preempted' : 'lost';
      runtime.stop({ uid: observation.uid, cause, graceMs });
    }
    return running.reduce((longestMs, { graceMs }) => Math.max(longestMs, graceMs), -1);
  }

  function isFinished({ kind, bootMs }: { kind: EndKind; bootMs: number }, now: number): boolean {
    const longestGraceMs = stopAll(kind);
    if (longestGraceMs >= 0) {
      idleBootMs = null;
      // With notice there is time: a last checkpoint may be on its way.
      return kind !== 'left' && now - bootMs > longestGraceMs + KILL_LIMIT_MS;
    }
    idleBootMs ??= now;
    if (kind !== 'left') return true;
    const isHeard = isTold || options.lastContactBootMs() === null;
    const isAll = runtime.list().length === 0 && options.unsent() === 0;
    return (isHeard && isAll) || now - idleBootMs > LAST_WORD_MS;
  }

  async function noticing<Reply>(call: Promise<Reply>): Promise<Reply> {
    try {
      return await call;
    } catch (error) {
      if (error instanceof DroverError && error.code === 'INSTANCE_ENDED') {
        begin('unwanted', error.message);
      }
      throw error;
    }
  }

  async function sync(workerToken: string, asked: SyncRequest): Promise<SyncReply> {
    const isLeaving = (): boolean => ending?.kind === 'left';
    const request = options.isLent ? await suddenEnds.settle(asked, isLeaving) : asked;
    if (ending?.kind !== 'left') {
      const overtaken = Promise.withResolvers<never>();
      overtake = overtaken.reject;
      return Promise.race([noticing(transport.sync(workerToken, request)), overtaken.promise]);
    }
    const notice = { check: ENDING, severity: 'drain' as const, message: ending.reason };
    const others = request.health?.problems.slice(0, AGENT_LIMITS.problems - 1) ?? [];
    const health = { problems: [...others, notice] };
    const reply = await noticing(
      transport.sync(workerToken, { ...request, health, wait: isTold && request.wait }),
    );
    isTold = true;
    return reply;
  }

  return {
    transport: {
      join: (joinToken, request) => noticing(transport.join(joinToken, request)),
      sync,
    },
    leave: (reason) => begin('left', reason),
    close() {
      isOver = true;
      timer?.cancel();
      timer = null;
    },
  };
}
