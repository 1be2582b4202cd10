// Numbers as people read them.

/** 1234567 -> "1.23 M"; three digits that count. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (size >= limit) return `${digits(value / (unit === "k" ? 1e3 : limit))} ${unit}`;
  return digits(value);
}

function digits(value) {
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size === 0) return "0";
  if (size < 1e-3) return sign + size.toExponential(1).replace("-", "−");
  if (size >= 100) return sign + Math.round(size).toLocaleString("en");
  return sign + Number(size.toPrecision(3));
}

/** 4000 -> "1:06:40" */
export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** Seconds on an axis: "40 s", "12 min", "3 h". */
export function span(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 120) return `${digits(seconds)} s`;
  if (seconds < 7200) return `${digits(seconds / 60)} min`;
  return `${digits(seconds / 3600)} h`;
}

export function bytes(count) {
  if (!count) return "–";
  return count < 1e9 ? `${Math.round(count / 1e6)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

export const percent = (share) => `${share >= 0.1 ? Math.round(100 * share) : Number((100 * share).toFixed(1))} %`;
