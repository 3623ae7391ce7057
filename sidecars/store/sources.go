package store

// Source returns a control source's epoch and the version of its last change; found is false when
// the source has drawn no epoch yet.
//
// It locks nothing. In a Read, epoch and version agree with every record that the same Read sees.
func (t *Tx) Source(source string) (epoch, version uint64, found bool, err error) {
	err = t.Query("select epoch, version from sources where source = $1", func(r *Row) error {
		epoch, version, found = uint64(r.Int64(0)), uint64(r.Int64(1)), true
		return nil
	}, source)
	return epoch, version, found, err
}

// DrawEpoch makes sure that a control source has an epoch. A new epoch is the current time, so that
// a database that was made anew never has the epoch of the one before.
//
// A source that has an epoch keeps it.
func (t *Tx) DrawEpoch(source string, nowMillis int64) error {
	_, err := t.Exec(
		"insert into sources (source, epoch, version) values ($1, $2, 0) on conflict do nothing",
		source, nowMillis)
	return err
}

// SourceKey returns the key with which a control source signs its messages, "" when it has drawn
// none yet.
func (t *Tx) SourceKey(source string) (key string, err error) {
	err = t.Query("select signing_key from source_keys where source = $1", func(r *Row) error {
		key = r.Text(0)
		return nil
	}, source)
	return key, err
}

// DrawKey gives a control source this key unless it has one, and returns the key that it then has.
//
// Of two processes that draw at once, both get the key of the one that commits first. A key is
// never replaced: messages that it has signed are on the stream.
func (t *Tx) DrawKey(source, key string) (string, error) {
	_, err := t.Exec(
		"insert into source_keys (source, signing_key) values ($1, $2) on conflict do nothing",
		source, key)
	if err != nil {
		return "", err
	}
	return t.SourceKey(source)
}

// LockSource locks the counter row of a control source until the transaction ends. Other writers to
// the source wait.
func (t *Tx) LockSource(source string, nowMillis int64) (epoch, version uint64, err error) {
	return t.raise(source, 0, nowMillis)
}

// NextVersion takes the next version of a control source. The counter row stays locked until the
// transaction ends, so a writer to the source waits here for earlier writers: versions have no
// hole, and a later version is never visible before an earlier one.
func (t *Tx) NextVersion(source string, nowMillis int64) (epoch, version uint64, err error) {
	return t.raise(source, 1, nowMillis)
}

// NextVersions takes n versions at once and returns the first. n single updates of one row in one
// transaction would be slow: PostgreSQL walks through every version of that row.
//
// The caller must use all of them: a version without an outbox row is a gap for every replica.
func (t *Tx) NextVersions(source string, n int, nowMillis int64) (epoch, first uint64, err error) {
	epoch, last, err := t.raise(source, n, nowMillis)
	return epoch, last - uint64(n) + 1, err
}

// raise adds to the version of a source, draws the epoch of one that has none, and returns both as
// they then are. The update locks the counter row even when by is 0.
func (t *Tx) raise(source string, by int, nowMillis int64) (epoch, version uint64, err error) {
	for drawn := false; epoch == 0 && err == nil; drawn = true {
		if drawn {
			if err = t.DrawEpoch(source, nowMillis); err != nil {
				break
			}
		}
		err = t.Query(
			"update sources set version = version + $1 where source = $2 returning epoch, version",
			func(r *Row) error {
				epoch, version = uint64(r.Int64(0)), uint64(r.Int64(1))
				return nil
			}, by, source)
	}
	return epoch, version, err
}

// BumpEpoch gives a control source a new epoch, above its last one and above the given one. It is
// for a database that was restored from a backup. Versions go on and never start over.
//
// above is the epoch of the last message on the stream: a clock that was set back must not lead to
// an epoch that replicas have met already.
func (t *Tx) BumpEpoch(source string, above uint64, nowMillis int64) (epoch uint64, err error) {
	if epoch, _, err = t.LockSource(source, nowMillis); err != nil {
		return 0, err
	}
	epoch = max(epoch+1, above+1, uint64(max(nowMillis, 0)))
	_, err = t.Exec("update sources set epoch = $1 where source = $2", epoch, source)
	return epoch, err
}

// RaiseVersion makes the next version of a control source come after version, if it does not
// already. It is for a restored database, which lacks changes that the stream has.
func (t *Tx) RaiseVersion(source string, version uint64) error {
	_, err := t.Exec("update sources set version = $1 where source = $2 and version < $3", version,
		source, version)
	return err
}
