//go:build unix

package storetest

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps signals to the process group of the tests from the keeper. It gives the keeper and
// its folder to another user when this one is root: PostgreSQL refuses to run as root.
func apart(keeper *exec.Cmd, dir string) error {
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := unprivileged()
	if err != nil {
		return err
	}
	keeper.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return os.Chown(dir, int(uid), int(gid))
}
