package session

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// supported reports that the system can share sealed memory over a socket.
const supported = true

// setMode gives the file of a socket its mode before the socket has a name. The kernel combines it
// with the umask when it makes the file.
func setMode(fd uintptr, mode os.FileMode) error {
	return unix.Fchmod(int(fd), uint32(mode.Perm()))
}

// eventRegion is shared memory that only the server can map for writing: the seal against later
// writable mappings comes after our own mapping. The seals against shrinking and growing come
// before it, so that no access ever faults, and the last seal forbids to change the seals.
func eventRegion(size int) (*ring.Region, error) {
	const name = "posttrade-events"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("session: create memfd=%s: %w", name, err)
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("session: size memfd=%s bytes=%d: %w", name, size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("session: seal memfd=%s: %w", name, err)
	}
	region, err := ring.Attach(fd, size)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
		unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL); err != nil {
		region.Close()
		return nil, fmt.Errorf("session: seal memfd=%s: %w", name, err)
	}
	return region, nil
}

// rightsTo returns the control message that carries copies of the regions' descriptors. The caller
// calls drop when the message is sent, also after an error: the copies are then the client's alone.
func rightsTo(regions []*ring.Region) (rights []byte, drop func(), err error) {
	var copies []int
	drop = func() {
		for _, fd := range copies {
			unix.Close(fd)
		}
	}
	for _, r := range regions {
		fd, err := unix.FcntlInt(uintptr(r.Fd()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, drop, err
		}
		copies = append(copies, fd)
	}
	return unix.UnixRights(copies...), drop, nil
}

// peerOf is the process at the other end, for the log; 0 when the kernel does not say.
func peerOf(c *net.UnixConn) (pid int32) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			pid = peer.Pid
		}
	})
	return pid
}
