// Runs each argument as a query of DuckDB, and prints every row on a line, its values with a space
// between them. NODE_PATH names the folder of the package.
const { DuckDBInstance } = require('@duckdb/node-api');

async function main() {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  for (const query of process.argv.slice(2)) {
    const answer = await connection.runAndReadAll(query);
    for (const row of answer.getRows()) console.log(row.map(String).join(' '));
  }
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
