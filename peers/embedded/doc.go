// Package embedded runs servers whose code is part of this program as processes of live runs. It is
// empty on systems other than Linux.
package embedded
