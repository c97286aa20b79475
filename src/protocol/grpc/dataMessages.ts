/** Data sets between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { DataKind } from '../../model/dataSet.ts';
import type { DataInput, DataView } from '../dataSets.ts';
import * as wire from '../gen/drover/v1/data_pb.ts';
import * as w from './wire.ts';

const dataKind = w.enumTable<DataKind, wire.DataKind>('data kind', {
  blob: wire.DataKind.BLOB,
  tree: wire.DataKind.TREE,
});

export function dataToWire(data: DataInput): MessageInitShape<typeof wire.DataContentSchema> {
  const { name, kind, hash, bytes, files } = data;
  return {
    name,
    kind: dataKind.toWire(kind),
    hash,
    bytes: w.toBigint(bytes),
    files: w.toBigint(files),
  };
}

export function dataFromWire(sent: wire.DataContent | undefined): DataInput {
  const { name, kind, hash, bytes, files } = w.need(sent, 'content');
  return {
    name,
    kind: dataKind.toWord(kind),
    hash,
    bytes: w.toNumber(bytes),
    files: w.toNumber(files),
  };
}

export function dataViewToWire(view: DataView): MessageInitShape<typeof wire.DataSetSchema> {
  return {
    content: dataToWire(view),
    version: w.toBigint(view.version),
    createdAtMs: w.toBigint(view.createdAtMs),
    createdBy: view.createdBy,
  };
}

export function dataViewFromWire(sent: wire.DataSet | undefined): DataView {
  const message = w.need(sent, 'data set');
  return {
    ...dataFromWire(message.content),
    version: w.toNumber(message.version),
    createdAtMs: w.toNumber(message.createdAtMs),
    createdBy: message.createdBy,
  };
}
