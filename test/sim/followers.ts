/** Clients that follow a job to its end: its events by cursor, its log by sequence number. */
import { encodeCursor } from '../../src/control/cursors.ts';
import { DroverError } from '../../src/lib/errors.ts';
import type { Principal } from '../../src/model/token.ts';
import type { Coordinator } from '../../src/protocol/coordinator.ts';
import type { Checker } from './checkers/checker.ts';
import type { Position } from './checkers/delivery.ts';
import type { World } from './world.ts';

export interface FollowOptions {
  world: World;
  checker: Checker;
  job: string;
  call: <Reply>(
    what: string,
    run: (coordinator: Coordinator, who: Principal) => Promise<Reply>,
  ) => Promise<Reply>;
}

const AGAIN_MS = 1000;
const WAIT_MS = 5000;
const EVENTS_PAGE = 3;

/** Resolves when the log is said to be complete. A lost answer is asked for again from there. */
export async function followLog({ world, checker, job, call }: FollowOptions): Promise<void> {
  const position: Position = { job, at: 0 };
  for (let after = 0; ;) {
    try {
      const page = await call(`log ${job}`, async (c, who) => {
        const read = await c.readLogs(who, job, { after, waitMs: WAIT_MS });
        // At the moment of the answer: afterwards a machine that was thought gone may bring more.
        if (read.complete) checker.logComplete(job, read.next);
        return read;
      });
      checker.logPage(position, page);
      after = page.next;
      if (page.complete) return;
    } catch (error) {
      if (error instanceof DroverError && error.code === 'NOT_FOUND') checker.missing(job);
      await pause(world);
    }
  }
}

/** Resolves when the job has ended and every event of it has come. */
export async function followEvents({ world, checker, job, call }: FollowOptions): Promise<void> {
  const position: Position = { job, at: 0 };
  let cursor: string | undefined;
  for (;;) {
    try {
      // Asked before: what is written until the end is there when the events are read.
      const { endedAtMs } = await call(`state ${job}`, (c, who) => c.getJob(who, job));
      const page = { limit: EVENTS_PAGE, ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await call(`events ${job}`, (c, who) =>
        c.listEvents(who, job, page),
      );
      checker.eventPage(position, items);
      const last = items.at(-1);
      if (last) cursor = encodeCursor([last.epoch, last.seq]);
      if (nextCursor !== null) continue;
      if (endedAtMs !== null) {
        checker.eventsEnded(position);
        return;
      }
    } catch {
      // Asked again from where it was.
    }
    await pause(world);
  }
}

function pause(world: World): Promise<void> {
  return new Promise((resolve) => void world.after(AGAIN_MS, resolve));
}
