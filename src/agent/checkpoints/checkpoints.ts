/**
 * Checkpoints of the attempts on this machine: what a command saves in its directory is stored and
 * committed while it runs and when it is over, and restored into the task's next attempt anywhere.
 */
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { manifestBytes, manifestText } from '../../model/manifest.ts';
import type { CheckpointReport } from '../../protocol/agent.ts';
import type { BlobClientOptions } from '../../protocol/blobClient.ts';
import type { Step } from '../around.ts';
import { isRefusal, storeManifest } from '../folders/storeManifest.ts';
import type { End } from '../runtimes/ending.ts';
import { CHECKPOINT_FOLDER, readRecord, writeRecord, type Record } from './record.ts';
import { restore } from './restore.ts';
import { takeSnapshot } from './snapshot.ts';
import { CheckpointWatch, type Reason } from './watch.ts';

export interface CheckpointOptions {
  blobsOf: (uid: string) => BlobClientOptions;
  addCheckpoint: (report: CheckpointReport) => Promise<void>;
  clock: Clock;
  log: Log;
}

export interface Checkpoints extends Step {
  /** Somebody wants one now; nothing happens where the attempt does not run. */
  ask(uid: string): void;
}

interface Saving {
  uid: string;
  home: string;
  record: Record;
  pids: () => number[];
  unclean: boolean;
  signal: AbortSignal;
}

export function createCheckpoints(options: CheckpointOptions): Checkpoints {
  const { blobsOf, clock, log } = options;
  const watches = new Map<string, CheckpointWatch>();
  const ends = new Map<string, Promise<void>>();

  /** True when there was something new. */
  async function save(saving: Saving, reason: Reason): Promise<boolean> {
    const { uid, home, record, signal } = saving;
    const blobs = blobsOf(uid);
    const folder = join(home, CHECKPOINT_FOLDER);
    const takenBootMs = Math.round(clock.bootMs());
    const { manifest, known } = await takeSnapshot({ ...saving, blobs, folder, clock });
    const isNew = manifestText(manifest) !== manifestText(record.manifest);
    record.known = known;
    // One without files is none: to resume from it would be to begin anew.
    if (manifest.files.length === 0 || !isNew) return false;
    const hash = await storeManifest(blobs, manifest, join(home, 'manifest.json'), signal);
    const bytes = manifestBytes(manifest);
    signal.throwIfAborted();
    const files = manifest.files.length;
    await options.addCheckpoint({ uid, manifest: hash, bytes, files, reason, takenBootMs });
    record.manifest = manifest;
    writeRecord(home, record);
    return true;
  }

  return {
    needsPreparation: (order) => order.checkpoint !== undefined,
    prepare: (preparation) => restore(blobsOf(preparation.order.uid), preparation),

    watch(started) {
      const { order, home, pids } = started;
      const spec = order.checkpoint;
      if (!spec) return undefined;
      const { uid } = order;
      const record = readRecord(home);
      const ending = new AbortController();
      const saving = { uid, home, record, pids, unclean: false, signal: ending.signal };
      const watch = new CheckpointWatch({
        ...{ started, spec, clock },
        record: () => record,
        async save(reason) {
          try {
            await save(saving, reason);
          } catch (error) {
            if (ending.signal.aborted) return;
            log.warn({ attempt: uid, error, reason }, 'no checkpoint was stored; trying again');
          }
        },
      });
      watches.set(uid, watch);
      return () => {
        watches.delete(uid);
        ending.abort();
        ends.set(uid, watch.end());
      };
    },

    needsFinish: (order) => order.checkpoint !== undefined,

    async finish({ order: { uid }, home, how, signal, say }) {
      // What is under way may not be committed after the final one.
      await ends.get(uid);
      ends.delete(uid);
      const record = readRecord(home);
      const saving = { uid, home, record, pids: () => [], unclean: isUnclean(how), signal };
      try {
        say('storing its last checkpoint');
        await save(saving, 'end');
        return {};
      } catch (error) {
        if (isRefusal(error)) {
          return { message: `its last checkpoint could not be stored: ${error.message}` };
        }
        if (!signal.aborted) say(`its checkpoint is not stored yet: ${(error as Error).message}`);
        throw error;
      }
    },

    ask: (uid) => watches.get(uid)?.ask('demand'),
  };
}

/** A shell says by a code above 128 that a signal ended what it ran. */
function isUnclean({ exitCode }: End): boolean {
  return exitCode === undefined || exitCode === null || exitCode > 128;
}
