// `node read_qr.mjs PICTURE`: print the texts of the QR codes in a PNG, as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { prepareZXingModule, readBarcodes } from "zxing-wasm/reader";

// The package would load its code from a server; it has it itself.
const wasm = createRequire(import.meta.url).resolve("zxing-wasm/reader/zxing_reader.wasm");
prepareZXingModule({ overrides: { wasmBinary: readFileSync(wasm).buffer } });
const found = await readBarcodes(new Uint8Array(readFileSync(process.argv[2])), { formats: ["QRCode"] });
console.log(JSON.stringify(found.map(one => one.text)));
