//go:build !linux

package evidence

import "errors"

// become is for live runs, which need Linux.
func become([]string) error { return errors.ErrUnsupported }
