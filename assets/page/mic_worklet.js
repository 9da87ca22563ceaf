// In the audio thread: hands the samples of the first channel to the page.
registerProcessor("recorder", class extends AudioWorkletProcessor {
  process([input]) {
    if (input?.[0]) this.port.postMessage(input[0].slice());
    return true;
  }
});
