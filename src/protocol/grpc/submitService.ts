/** The submissions of drover.v1.Coordinator: one job, or many of which all are taken or none. */
import { createHash } from 'node:crypto';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { z } from 'zod';
import type { JobSpec } from '../../model/job.ts';
import type { Coordinator, SubmitReply } from '../coordinator.ts';
import type {
  Coordinator as CoordinatorService,
  SubmitJobRequest,
} from '../gen/drover/v1/coordinator_pb.ts';
import type * as wire from '../gen/drover/v1/job_pb.ts';
import { submitBatch } from '../jobSpec.ts';
import { principalOf } from './caller.ts';
import { parse } from './check.ts';
import { downstreamFromWire } from './downstreamMessages.ts';
import { specFromWire } from './specMessages.ts';
import { need } from './wire.ts';

const key = z.string().min(1).max(255).optional();

export function submitMethods(
  coordinator: Coordinator,
): Pick<ServiceImpl<typeof CoordinatorService>, 'submitJob' | 'submitJobs'> {
  const submit = (
    sent: wire.JobSpec[],
    request: Pick<SubmitJobRequest, 'idempotencyKey' | 'bodyHash' | 'downstream'>,
    context: HandlerContext,
  ): Promise<SubmitReply> => {
    const specs = parse(submitBatch, { jobs: sent.map(specFromWire) }).jobs;
    const idempotencyKey = parse(key, request.idempotencyKey) ?? null;
    const bodyHash = request.bodyHash ?? (idempotencyKey === null ? null : hashOf(specs));
    const downstream = request.downstream && downstreamFromWire(request.downstream);
    return coordinator.submit(principalOf(context), {
      ...{ specs, idempotencyKey, bodyHash },
      ...(downstream && { downstream }),
    });
  };
  return {
    async submitJob(request, context) {
      const { ids, replayed } = await submit([need(request.spec, 'spec')], request, context);
      return { id: ids[0] ?? '', replayed };
    },
    submitJobs: async (request, context) => submit(request.specs, request, context),
  };
}

/** For clients that send a key and no hash. Maps have no order on the wire, so theirs is sorted. */
function hashOf(specs: JobSpec[]): string {
  const body = specs.map(({ env, labels, annotations = {}, ...spec }) => [
    spec,
    ...[env, labels, annotations].map(sorted),
  ]);
  return createHash('sha256').update(JSON.stringify(body)).digest('hex');
}

function sorted(map: Record<string, string>): string[][] {
  return Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
