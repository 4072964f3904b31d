package evidence

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// become makes this process another program, which the kernel kills when the thread that started the
// process is gone.
func become(args []string) error {
	runtime.LockOSThread() // the kernel keeps the signal per thread
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return errno
	}
	if os.Getppid() == 1 {
		return errors.New("the process that started it has ended")
	}
	return syscall.Exec(args[0], args, os.Environ())
}
