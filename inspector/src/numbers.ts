// Formatting of numbers and times. The language is fixed, so that the page is the same everywhere.
import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";

const whole = new Intl.NumberFormat("en");

export function count(n: number | bigint): string {
  return whole.format(n);
}

// short writes a number of tokens in about four characters.
export function short(n: number): string {
  if (Math.abs(n) < 1000) return String(Math.round(n));
  const [value, unit] = Math.abs(n) < 999_500 ? [n / 1e3, "k"] : [n / 1e6, "M"];
  return value.toFixed(Math.abs(value) < 99.95 ? 1 : 0) + unit;
}

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) {
    n /= 1024;
    at++;
  }
  return (at === 0 ? String(n) : n.toFixed(n < 10 ? 1 : 0)) + " " + units[at];
}

export function plural(n: number, one: string, many = one + "s"): string {
  return count(n) + " " + (n === 1 ? one : many);
}

// percent rounds down, so that 100% means all.
export function percent(part: number, of: number): string {
  return of <= 0 ? "-" : Math.floor((100 * part) / of) + "%";
}

// when writes a time in UTC, as the command line does.
export function when(time: Timestamp | undefined): string {
  if (time === undefined) return "-";
  const date = timestampDate(time);
  return Number.isNaN(date.getTime()) ? "-" : date.toISOString().slice(0, 19).replace("T", " ");
}
