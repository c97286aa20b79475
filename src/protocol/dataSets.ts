/** REST schemas of data sets and of the collection of what nothing names. */
import { z } from 'zod';
import { BLOB_HASH } from '../model/blob.ts';
import { DATA_KINDS } from '../model/dataSet.ts';
import { EXAMPLE_HASH } from './blobs.ts';

/** No slash and no dot in front: it is a word of a URI and of a path. */
export const DATA_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
export const dataName = z
  .string()
  .regex(DATA_NAME, 'is letters, digits, dots, dashes and underscores, up to 200 of them');

export const dataContent = z
  .strictObject({
    kind: z.enum(DATA_KINDS).default('blob'),
    hash: z.string().regex(BLOB_HASH, 'is not sha256: and 64 hexadecimal digits'),
    bytes: z.int().min(0),
    files: z.int().min(0).default(1),
  })
  .meta({ id: 'DataContent', examples: [{ kind: 'blob', hash: EXAMPLE_HASH, bytes: 0 }] });

export const dataInput = dataContent.extend({ name: dataName });
export type DataInput = z.infer<typeof dataInput>;

export const dataView = z
  .object({
    name: z.string(),
    version: z.int(),
    /** A file, or a folder by its manifest. */
    kind: z.enum(DATA_KINDS),
    hash: z.string(),
    bytes: z.int(),
    files: z.int(),
    createdAtMs: z.number(),
    createdBy: z.string(),
  })
  .meta({ id: 'DataSet' });
export type DataView = z.infer<typeof dataView>;

/** Blobs that a collection lists by name; beyond them it counts. */
export const COLLECTED_LISTED = 1000;

export const collectRequest = z
  .strictObject({
    apply: z.boolean().default(false).describe('False: say what would go, and remove nothing'),
  })
  .meta({ examples: [{ apply: false }] });

export const collectionView = z
  .object({
    applied: z.boolean(),
    /** What nothing names and is old enough. */
    blobs: z.int(),
    bytes: z.int(),
    /** What nothing names yet but came lately: somebody may be about to name it. */
    sparedBlobs: z.int(),
    sparedBytes: z.int(),
    keptBlobs: z.int(),
    keptBytes: z.int(),
    listed: z.array(z.object({ hash: z.string(), size: z.int(), modifiedAtMs: z.number() })),
  })
  .meta({ id: 'Collection' });
export type CollectionView = z.infer<typeof collectionView>;
