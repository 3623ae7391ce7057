package client

import "golang.org/x/sys/unix"

// rightsRoom is the size of a control message with a few descriptors.
var rightsRoom = unix.CmsgSpace(4 * 4)

// descriptors takes the descriptors out of a control message. The caller owns them; after an error
// none is left open.
func descriptors(rights []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, some...)
	}
	return fds, nil
}

// closeAll closes descriptors that were received and not attached: they are open from their
// arrival.
func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
