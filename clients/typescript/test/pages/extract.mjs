// Writes the code of a page of docs/adapters to FOLDER/before.ts and after.ts, so that it is checked and run.
// usage: node extract.mjs PAGE FOLDER
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const [page, folder] = process.argv.slice(2);
const path = resolve(import.meta.dirname, "../../../../docs/adapters", `${page}.md`);
const blocks = [...readFileSync(path, "utf8").matchAll(/^```ts\n(.*?)^```$/gms)];
if (blocks.length !== 2) throw new Error(`${path}: ${blocks.length} programs instead of two`);
blocks.forEach(([, code], i) => writeFileSync(resolve(folder, i === 0 ? "before.ts" : "after.ts"), code));
