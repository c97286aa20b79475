/** Who an agent is and what its machine has. */
import { z } from 'zod';
import { DEVICE_KINDS } from '../model/resources.ts';
import { storable } from './texts.ts';

const text = z.string().max(1024).overwrite(storable);
const count = z.int().min(0);

export const joinRequest = z.strictObject({
  name: text.min(1),
  /** Identity of machine and data folder; joining again with it supersedes the earlier worker. */
  machine: text.min(1),
  bootId: text,
  address: text,
  network: text,
  agentVersion: text,
  capabilities: z.array(text).max(100),
  attributes: z.record(text, text),
  resources: z.strictObject({
    cpuMillis: count,
    memoryBytes: count,
    devices: z
      .array(
        z.strictObject({
          index: count,
          kind: z.enum(DEVICE_KINDS),
          model: text,
          memoryBytes: count,
        }),
      )
      .max(1024),
    portRange: z.tuple([z.int().min(1).max(65535), z.int().min(1).max(65535)]),
  }),
  /** What the machine's owner demands of the work it takes; left out: nothing. */
  terms: z
    .strictObject({
      /** Only these tenants; empty: any. */
      tenants: z.array(text.min(1)).max(1000),
      interruptibleOnly: z.boolean(),
    })
    .optional(),
  /** The physical machine, for its reputation; left out: the worker's name. */
  host: text.optional(),
  /** What its provider calls the instance it runs in; left out: it came by itself. */
  instance: text.optional(),
  /**
   * It began with an empty disk: nothing runs there of before. A word that is the same however
   * often this join comes; left out: it remembers an earlier one.
   */
  fresh: text.optional(),
});
export type JoinRequest = z.infer<typeof joinRequest>;
