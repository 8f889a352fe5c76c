// Package wire converts between the API's messages and the domain's values. It
// is pure: no conversion looks anything up, fills anything in or keeps state.
//
// What protovalidate's rules in the API cannot say is checked here: JSON fields
// hold JSON, names hold no NUL, times exist. Such an error is an
// *eventlog.InvalidError whose field is a path within the message that was
// converted.
package wire
