/** A data set: bytes of a tenant under a name that jobs can ask for as `data:NAME`. */

export const DATA_KINDS = ['blob', 'tree'] as const;
export type DataKind = (typeof DATA_KINDS)[number];

export interface DataSet {
  tenant: string;
  name: string;
  /** Rises each time the name is given to other bytes. */
  version: number;
  /** A file, or a folder by its manifest. */
  kind: DataKind;
  hash: string;
  bytes: number;
  files: number;
  createdAtMs: number;
  createdBy: string;
}

/** As an input names it. */
export function dataUri({ kind, hash }: Pick<DataSet, 'kind' | 'hash'>): string {
  return `${kind}:${hash}`;
}
