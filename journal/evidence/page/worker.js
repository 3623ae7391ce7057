
// The thread of the verifier. It stands behind Go's script, in a worker of a page. The page sends the
// module once, {module}, and then one job after the other:
//
//	{file, keys, witnesses}                                a file with proofs: a File, or text
//	{name, files: [[path, File]], report, keys, witnesses} an export, and a report against it or none
//
// The thread says {ready: true} when it has begun, {done, of} while it replays commands, and in the
// end {exit, text}. A verifier that has ended, such as for want of memory, is started anew for the
// next job.
(() => {
  const most = 512; // MiB: a module has 4 GiB, for a whole file, the engine and what it makes
  const reader = new FileReaderSync();
  const bytesOf = (file) => new Uint8Array(reader.readAsArrayBuffer(file));
  let module, running;

  async function begin() {
    const go = new Go();
    const instance = await WebAssembly.instantiate(module, go.importObject);
    const ended = () => { running = undefined; };
    go.run(instance).then(ended, ended);
    return true;
  }

  function verify(job) {
    if (!job.files) return posttradeVerify(typeof job.file === 'string' ? job.file : bytesOf(job.file), job.keys, job.witnesses);
    const files = new Map(job.files);
    const read = (path) => files.has(path) ? bytesOf(files.get(path)) : undefined;
    return posttradeVerifyExport(job.name, read, job.keys, job.witnesses, job.report && bytesOf(job.report),
      job.report && job.report.name, (done, of) => postMessage({ done, of }), [...files.keys()]);
  }

  const large = (job) => [job.file, job.report, ...(job.files || []).map(([, file]) => file)]
    .find((file) => file && file.size > most << 20);

  async function judge(job) {
    const file = large(job);
    if (file) {
      return { exit: 1, text: `${file.name} has ${Math.ceil(file.size / (1 << 20))} MiB. A browser verifies files of up to ` +
        `${most} MiB: use posttrade evidence verify.` };
    }
    try {
      await (running ||= begin());
      const said = verify(job);
      if (said) return said;
      throw new Error('there is not enough memory in a browser; use posttrade evidence verify');
    } catch (error) {
      running = undefined;
      return { exit: 1, text: `The verifier has ended: ${error.message}.` };
    }
  }

  onmessage = async ({ data }) => {
    if (data.module) module = data.module;
    else postMessage(await judge(data));
  };
  postMessage({ ready: true });
})();
