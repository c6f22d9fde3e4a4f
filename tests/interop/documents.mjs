// Reads the wallet address documents and the keys at the URLs given, with the official client; prints them as JSON.
import { createUnauthenticatedClient } from "@interledger/open-payments";

const client = await createUnauthenticatedClient({ useHttp: true, logLevel: "silent" });
const found = [];
for (const url of process.argv.slice(2)) {
  const wallet = await client.walletAddress.get({ url });
  const { keys } = await client.walletAddress.getKeys({ url });
  found.push({ wallet, keys });
}
console.log(JSON.stringify(found));
