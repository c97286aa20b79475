/** Orders to run an attempt, between our types and the generated ones. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AttemptOrder, GangOrder } from '../agent.ts';
import type * as wire from '../gen/drover/v1/agent_pb.ts';
import { orderPartsFromWire, orderPartsToWire } from './partMessages.ts';
import * as w from './wire.ts';

export function orderToWire(order: AttemptOrder): MessageInitShape<typeof wire.AttemptOrderSchema> {
  return {
    ...order,
    cpuMillis: w.toBigint(order.cpuMillis),
    memoryBytes: w.toBigint(order.memoryBytes),
    graceMs: w.toBigint(order.graceMs),
    attemptLeaseMs: w.toBigint(order.attemptLeaseMs),
    ...orderPartsToWire(order),
    gang: order.gang && { ...order.gang, master: order.gang.master ?? undefined },
  };
}

export function orderFromWire(message: wire.AttemptOrder): AttemptOrder {
  return {
    uid: message.uid,
    job: message.job,
    task: message.task,
    index: message.index,
    n: message.n,
    command: message.command,
    env: { ...message.env },
    workdir: message.workdir,
    cpuMillis: w.toNumber(message.cpuMillis),
    memoryBytes: w.toNumber(message.memoryBytes),
    devices: message.devices.map(({ index, kind }) => ({ index, kind })),
    share: message.share,
    ports: message.ports,
    graceMs: w.toNumber(message.graceMs),
    attemptLeaseMs: w.toNumber(message.attemptLeaseMs),
    ...orderPartsFromWire(message),
    ...(message.gang && { gang: gangFromWire(message.gang) }),
  };
}

function gangFromWire({ master, members, ...gang }: wire.GangOrder): GangOrder {
  const { rank, size, round, token, worker, visibleGpus } = gang;
  return {
    ...{ rank, size, round, token, worker, visibleGpus },
    master: master ? { worker: master.worker, address: master.address, port: master.port } : null,
    members: members.map((member) => ({ worker: member.worker, address: member.address })),
  };
}
