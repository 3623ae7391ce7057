package inspect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// stepKeys is shown at the start and after every key that has no meaning.
const stepKeys = "n next, b back, f TICKER next fill of it, q quit"

// Step walks through the history command by command. in gives the keys; f is followed by a ticker
// and the end of the line.
//
// at is the sequence to begin with, 0 for the state before the first command. The caller has set
// the terminal to single keys. The walk ends with q, with the end of in, or with ctx; none of
// these is an error.
func (p *Past) Step(ctx context.Context, in io.Reader, w io.Writer, at uint64) error {
	m, err := p.h.At(ctx, at)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	m.Release()
	keys := make(chan byte)
	go func() { // ends with the program: nothing can wake a reader of a terminal
		defer close(keys)
		for r := bufio.NewReader(in); ; {
			key, err := r.ReadByte()
			if err != nil {
				return
			}
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}()
	s := &stepper{Past: p, w: w, at: at, keys: keys}
	fmt.Fprintf(w, "%s\n", stepKeys)
	if err := s.show(ctx); err != nil {
		return err
	}
	for {
		key, ok := s.key(ctx)
		if !ok || key == 'q' {
			return nil
		}
		if err := s.press(ctx, key); err != nil {
			return err
		}
	}
}

// press carries out a key.
//
// A key that would go beyond an end of the history changes nothing. The text of f is read key by
// key, because the terminal does not collect lines.
func (s *stepper) press(ctx context.Context, key byte) error {
	switch key {
	case 'n', ' ':
		return s.goTo(ctx, s.at+1)
	case 'b':
		if s.at > 0 {
			return s.goTo(ctx, s.at-1)
		}
	case 'f':
		fmt.Fprint(s.w, "next fill of: ")
		var ticker strings.Builder
		for {
			key, ok := s.key(ctx)
			if !ok || key == '\n' || key == '\r' {
				break
			}
			ticker.WriteByte(key)
		}
		fmt.Fprintln(s.w, strings.TrimSpace(ticker.String()))
		return s.nextFill(ctx, strings.TrimSpace(ticker.String()))
	case '\n', '\r':
	default:
		fmt.Fprintf(s.w, "%s\n", stepKeys)
	}
	return nil
}

// key waits for a key; false when no more come.
func (s *stepper) key(ctx context.Context) (key byte, ok bool) {
	select {
	case key, ok = <-s.keys:
		return key, ok
	case <-ctx.Done():
		return 0, false
	}
}

// stepper is one walk.
//
// One goroutine walks; another one reads the keys.
type stepper struct {
	*Past
	w    io.Writer
	keys <-chan byte // closed when no more come
	// The sequence that is shown.
	at uint64
}

// goTo shows another command.
func (s *stepper) goTo(ctx context.Context, at uint64) error {
	if head := s.h.Head(); at > head {
		fmt.Fprintf(s.w, "%d is the last command\n", head)
		return nil
	}
	s.at = at
	return s.show(ctx)
}

// show prints the command and its events.
//
// Tickers are those of the state before the command: the ones that it could mean.
func (s *stepper) show(ctx context.Context) error {
	if s.at == 0 {
		fmt.Fprintln(s.w, "0  the state before the first command")
		return nil
	}
	var ticker func(uint32) string
	names := map[uint32]string{}
	events, err := s.h.Command(ctx, s.at, func(state asof.StateBefore) error {
		ticker = func(id uint32) string { return names[id] }
		for _, one := range state.Views.Securities() {
			names[one.ID] = one.Ticker
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(s.w, commandText(events[0].Cmd(), ticker))
	for i := range events {
		if text := eventText(&events[i], ticker); text != "" {
			fmt.Fprintf(s.w, "     %s\n", text)
		}
	}
	return nil
}

// errFound ends a walk through the fills.
var errFound = errors.New("found")

// nextFill goes to the next command that has executed something of a security.
//
// It looks from the trades of the state that is shown, so a fill of this very command is not found
// again.
func (s *stepper) nextFill(ctx context.Context, ticker string) error {
	m, err := s.h.At(ctx, s.h.Head())
	if err != nil {
		return err
	}
	id, known := m.Engine().Security(ticker)
	m.Release()
	if !known {
		fmt.Fprintf(s.w, "no such security: %q\n", ticker)
		return nil
	}
	if m, err = s.h.At(ctx, s.at); err != nil {
		return err
	}
	from := m.Engine().TradeSeq() + 1
	m.Release()
	next, err := fillAfter(ctx, s.j, from, id)
	if err != nil {
		return err
	}
	if next == 0 {
		fmt.Fprintf(s.w, "no later fill of %s\n", ticker)
		return nil
	}
	return s.goTo(ctx, next)
}

// fillAfter is the command of the first fill of a security from a trade sequence on, 0 for none.
//
// Cost: the fill blocks up to the first hit; without one, all of them to the head.
func fillAfter(ctx context.Context, j *journal.Journal, from uint64,
	security uint32) (inputSeq uint64, err error) {
	err = j.Fills(from, func(fills []matcher.Fill) error {
		for i := range fills {
			if fills[i].SecurityID == security {
				inputSeq = fills[i].InputSeq
				return errFound
			}
		}
		return ctx.Err()
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return inputSeq, err
}
