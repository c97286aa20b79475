/** What a claim costs: prices by the hour, money in millionths, whole numbers throughout. */

export const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The calendar repeats every 400 years. */
const DAYS_PER_ERA = 146_097;

interface Claimed {
  devices: readonly number[];
  share: number;
  cpuMillis: number;
}

export interface Price {
  deviceHourMicros: number;
  cpuHourMicros: number;
}

/** Thousandths of devices a claim holds. */
export function deviceMillisOf({ devices, share }: Omit<Claimed, 'cpuMillis'>): number {
  return devices.length * share;
}

export function priceOf(claim: Claimed, price: Price): number {
  return hourMicros(deviceMillisOf(claim), claim.cpuMillis, price);
}

/** The one sum: a planner's forecast, a hold and a charge must agree to the last millionth. */
export function hourMicros(deviceMillis: number, cpuMillis: number, price: Price): number {
  const devices = (deviceMillis * price.deviceHourMicros) / 1000;
  return Math.round(devices + (cpuMillis * price.cpuHourMicros) / 1000);
}

/** How far ahead money and device time are set aside for something that runs. */
export function holdMs(timeLimitMs: number): number {
  return timeLimitMs > 0 ? Math.min(timeLimitMs, HOUR_MS) : HOUR_MS;
}

/** What is set aside of money: never less than what will be charged. */
export function holdMicros(priceMicros: number, ms: number): number {
  return Math.ceil((priceMicros / HOUR_MS) * ms);
}

/** Rises with the time, so what is still to be charged is the difference of two of these. */
export function costOf(priceMicros: number, ms: number): number {
  return Math.floor((priceMicros / HOUR_MS) * ms);
}

export function deviceMsOf(deviceMillis: number, ms: number): number {
  return Math.floor((deviceMillis * ms) / 1000);
}

/** Days since 1970, in UTC: a day's budget begins anew at midnight there. */
export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** Months since the year 0, in UTC. */
export function monthOf(ms: number): number {
  // Counted from 1 March of the year 0, so that the leap day comes last in its year.
  const days = dayOf(ms) + 719_468;
  const era = Math.floor(days / DAYS_PER_ERA);
  const dayOfEra = days - era * DAYS_PER_ERA;
  const leapDays =
    Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const firstDay = 365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100);
  const monthsSinceMarch = Math.floor((5 * (dayOfEra - firstDay) + 2) / 153);
  return (era * 400 + yearOfEra) * 12 + 2 + monthsSinceMarch;
}
