package journal

import "fmt"

// mustBeSound panics unless the journal's numbers stand in their order: a stable commit's commands
// are stable, what is stable is durable, what is durable was appended, and without a tail no answer
// is ahead of the store. Each number only rises, so the smaller one is read first. A build with
// ring.Checks calls it whenever one of them has risen. Any goroutine.
func (j *Journal) mustBeSound() {
	answered, end := j.Answered(), uint64(j.stable.Load())
	stable := j.Stable()
	durable := j.Durable()
	applied := j.Applied()
	if end > stable || stable > durable || durable > applied || j.tail == nil && answered > durable {
		panic(fmt.Sprintf("journal: end=%d stable=%d answered=%d durable=%d applied=%d", end, stable,
			answered, durable, applied))
	}
}

// mustFollow panics unless a commit ends where its block ends: end is the head that the store gets,
// behind tip. Packer only.
func (b *Block) mustFollow(tip, end point) {
	inputs, trades := tip.inputSeq+uint64(b.Commands()), tip.tradeSeq+uint64(b.fillCount)
	if b.first != tip.inputSeq+1 || end.inputSeq != inputs || end.tradeSeq != trades {
		panic(fmt.Sprintf("journal: a commit from inputSeq=%d ends at inputSeq=%d tradeSeq=%d behind "+
			"inputSeq=%d tradeSeq=%d", b.first, end.inputSeq, end.tradeSeq, tip.inputSeq, tip.tradeSeq))
	}
}

// mustNotTakeBack panics unless the answers that have been released stay so.
func (j *Journal) mustNotTakeBack(inputSeq uint64) {
	if was := j.Answered(); inputSeq < was {
		panic(fmt.Sprintf("journal: answers up to inputSeq=%d after inputSeq=%d", inputSeq, was))
	}
}
