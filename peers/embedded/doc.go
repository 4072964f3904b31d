// Package embedded runs servers whose code is part of this program as processes of live runs. On
// other systems than Linux it has nothing.
package embedded
