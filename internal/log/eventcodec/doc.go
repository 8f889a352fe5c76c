// Package eventcodec encodes events as storagev1.Event, for stores that keep bytes.
package eventcodec
