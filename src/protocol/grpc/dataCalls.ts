/** The client's half of data sets. */
import type { Coordinator } from '../coordinator.ts';
import type { Connection } from './connection.ts';
import { dataToWire, dataViewFromWire } from './dataMessages.ts';

type DataCall = 'listData' | 'putData' | 'removeData' | 'namedBlobs';

export function dataCalls({ coordinator, call, by }: Connection): Pick<Coordinator, DataCall> {
  return {
    listData: (who) =>
      call(
        by(who),
        (options) => coordinator.listData({}, options),
        ({ dataSets }) => dataSets.map(dataViewFromWire),
      ),
    putData: (who, data) =>
      call(
        by(who),
        (options) => coordinator.putData({ content: dataToWire(data) }, options),
        ({ dataSet }) => dataViewFromWire(dataSet),
      ),
    removeData: (who, name) =>
      call(
        by(who),
        (options) => coordinator.removeData({ name }, options),
        () => undefined,
      ),
    namedBlobs: (who, cursor) =>
      call(
        by(who),
        (options) => coordinator.namedBlobs(cursor === null ? {} : { cursor }, options),
        ({ names, nextCursor }) => ({ items: names, nextCursor: nextCursor ?? null }),
      ),
  };
}
