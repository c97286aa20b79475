/** Receipts between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Fault } from '../../model/receipt.ts';
import type * as wire from '../gen/drover/v1/receipt_pb.ts';
import type { ReceiptView } from '../receipt.ts';
import * as w from './wire.ts';

export function receiptToWire(receipt: ReceiptView): MessageInitShape<typeof wire.ReceiptSchema> {
  const { time } = receipt;
  return {
    ...receipt,
    state: w.jobState.toWire(receipt.state),
    exitCode: receipt.exitCode ?? undefined,
    createdAtMs: w.toBigint(receipt.createdAtMs),
    startedAtMs: w.toBigintOrNone(receipt.startedAtMs),
    endedAtMs: w.toBigintOrNone(receipt.endedAtMs),
    ranOn: receipt.ranOn.map((place) => ({ ...place, ms: w.toBigint(place.ms) })),
    time: {
      waitingMs: w.toBigint(time.waitingMs),
      startingMs: w.toBigint(time.startingMs),
      runningMs: w.toBigint(time.runningMs),
      stoppingMs: w.toBigint(time.stoppingMs),
    },
    lost: receipt.lost.map((loss) => ({ ...loss, ms: w.toBigint(loss.ms) })),
    costMicros: w.toBigint(receipt.costMicros),
    deviceMs: w.toBigint(receipt.deviceMs),
    peakMemoryBytes: w.toBigintOrNone(receipt.peakMemoryBytes),
  };
}

export function receiptFromWire(sent: wire.Receipt | undefined): ReceiptView {
  const message = w.need(sent, 'receipt');
  const { $typeName: _type, $unknown: _unknown, ...plain } = message;
  const time = w.need(message.time, 'receipt.time');
  const { total, succeeded } = w.need(message.tasks, 'receipt.tasks');
  return {
    ...plain,
    state: w.jobState.toWord(message.state),
    exitCode: message.exitCode ?? null,
    createdAtMs: w.toNumber(message.createdAtMs),
    startedAtMs: w.toNumberOrNull(message.startedAtMs),
    endedAtMs: w.toNumberOrNull(message.endedAtMs),
    tasks: { total, succeeded },
    ranOn: message.ranOn.map(({ worker, name, pool, devices, attempts, ms }) => {
      return { worker, name, pool, devices, attempts, ms: w.toNumber(ms) };
    }),
    time: {
      waitingMs: w.toNumber(time.waitingMs),
      startingMs: w.toNumber(time.startingMs),
      runningMs: w.toNumber(time.runningMs),
      stoppingMs: w.toNumber(time.stoppingMs),
    },
    lost: message.lost.map(({ fault, attempts, ms, why }) => {
      return { fault: fault as Fault, attempts, ms: w.toNumber(ms), why };
    }),
    costMicros: w.toNumber(message.costMicros),
    deviceMs: w.toNumber(message.deviceMs),
    peakMemoryBytes: w.toNumberOrNull(message.peakMemoryBytes),
  };
}
