package journal

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/ring/must"
)

// narrow is a file system with little free space.
type narrow struct {
	vfs.FS
	free uint64
}

func (n *narrow) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: n.free}, nil
}

// TestRoomForCopyIsWithoutTheReserve: the room is what is free beside the reserve, and too little
// when that does not hold the store a second time.
func TestRoomForCopyIsWithoutTheReserve(t *testing.T) {
	fs := &narrow{vfs.NewMem(), 1 << 40}
	o := strict(t, fs)
	o.ReserveBytes = 1 << 20
	j := openNew(t, "j", o)
	appendAll(t, j, &flow{seed: 1}, 10)
	if room := must.Get(j.RoomForCopy())(t); room != 1<<40-1<<20 {
		t.Errorf("room for %d bytes", room)
	}
	used := j.db.Metrics().DiskSpaceUsage()
	fs.free = used + o.ReserveBytes
	if room := must.Get(j.RoomForCopy())(t); room != used {
		t.Errorf("room for %d bytes, want %d", room, used)
	}
	fs.free--
	_, err := j.RoomForCopy()
	must.Be(t, err, ErrNoRoom)
	must.OK(t, j.Close())
}
