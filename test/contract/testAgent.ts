/** An agent that runs nothing: it observes what it is told to. */
import { expect } from 'vitest';
import type { AttemptOrder, JoinReply, Observation } from '../../src/protocol/agent.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';

/** Time for an implementation that places in a loop. */
const SYNCS_AT_MOST = 50;

export class TestAgent {
  readonly #coordinator: Coordinator;
  readonly #joined: JoinReply;
  readonly #observed = new Map<string, Observation>();
  readonly #offsets = new Map<string, number>();
  #seq = 0;

  constructor(coordinator: Coordinator, joined: JoinReply) {
    this.#coordinator = coordinator;
    this.#joined = joined;
  }

  async untilOrdered(): Promise<AttemptOrder> {
    return this.#until(({ desired }) => desired[0]);
  }

  async untilStop(): Promise<{ uid: string; cause: string; graceMs: number }> {
    return this.#until(({ stop }) => stop[0]);
  }

  async untilTunnel(): Promise<{ gatewayUrl: string; ticket: string }> {
    return this.#until(({ tunnels }) => tunnels[0]);
  }

  async report(observation: Observation): Promise<void> {
    this.#observed.set(observation.uid, observation);
    await this.#sync(false);
  }

  /** Says that it ended and forgets it once that is acknowledged. */
  async end(observation: Observation): Promise<void> {
    this.#observed.set(observation.uid, observation);
    await this.#until(({ acknowledged }) => acknowledged.find((uid) => uid === observation.uid));
    this.#observed.delete(observation.uid);
  }

  async append(
    uid: string,
    stream: 'stdout' | 'stderr',
    bytes: Buffer,
    offset = this.#offsets.get(uid + stream) ?? 0,
  ): Promise<void> {
    const chunk = { uid, stream, offset, atMs: Date.now(), bytes };
    const end = Math.max(offset + bytes.length, this.#offsets.get(uid + stream) ?? 0);
    this.#offsets.set(uid + stream, end);
    const acks = await this.#coordinator.appendLogs(this.#joined.token, [chunk]);
    expect(acks).toEqual([{ uid, stream, offset: end }]);
  }

  async #until<Found>(
    find: (reply: Awaited<ReturnType<Coordinator['sync']>>) => Found | undefined,
  ): Promise<Found> {
    for (let i = 0; i < SYNCS_AT_MOST; i++) {
      const found = find(await this.#sync(true));
      if (found !== undefined) return found;
    }
    throw new Error('the controller never said it');
  }

  #sync(wait: boolean): ReturnType<Coordinator['sync']> {
    return this.#coordinator.sync(this.#joined.token, {
      worker: this.#joined.worker,
      bootId: 'boot-1',
      start: 1,
      seq: ++this.#seq,
      epoch: 0,
      observed: [...this.#observed.values()],
      wait,
    });
  }
}
