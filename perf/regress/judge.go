package regress

// Round is one turn of a row: the base, the head, and the base once more.
type Round struct{ Before, Head, After Sample }

// Add adds a round's samples to a row.
func (r *Row) Add(round Round) {
	r.Base = append(r.Base, round.Before, round.After)
	r.Head = append(r.Head, round.Head)
}

// Judge measures a row round by round until it can be decided. While the noise is too large to
// decide, it goes on, up to rules.MostRounds. A row that regressed is measured again from the start
// and counts only when it regresses twice: a random result does not repeat itself, a slower build
// does.
func Judge(rules Rules, name string, measure func() (Round, error)) (Verdict, error) {
	v, err := look(rules, name, measure)
	if err == nil && v.Outcome.Regressed() {
		return look(rules, name, measure)
	}
	return v, err
}

// look is one decision on new samples.
func look(rules Rules, name string, measure func() (Round, error)) (Verdict, error) {
	row := Row{Name: name}
	for {
		round, err := measure()
		if err != nil {
			return Verdict{}, err
		}
		row.Add(round)
		if len(row.Head) < rules.Rounds {
			continue
		}
		v, err := Decide(rules, row)
		if err != nil || v.Outcome != Unsure || len(row.Head) >= rules.MostRounds {
			return v, err
		}
	}
}
