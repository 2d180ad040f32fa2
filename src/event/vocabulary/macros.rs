//! The two shapes of the vocabulary: a record of members, and an open set of kinds.

/// A struct whose members have the given JSON names, and which keeps those it does not know.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$field_meta:meta])* $field:ident: $ty:ty = $key:literal, )* }
        new($($arg:ident: $arg_ty:ty),*) $(without($($opt:ident),*))?
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )*
            /// Members that this type does not know, kept as written.
            pub extra: $crate::event::vocabulary::Extra,
        }

        impl $name {
            /// With these members, and none of the optional ones.
            #[must_use]
            pub fn new($($arg: $arg_ty),*) -> Self {
                Self {
                    $( $arg: $arg.into(), )*
                    $( $( $opt: None, )* )?
                    extra: $crate::event::vocabulary::Extra::new(),
                }
            }
        }

        impl $crate::event::vocabulary::field::Record for $name {
            fn from_members(
                object: $crate::event::JsonRef<'_>,
                tag: Option<&str>,
            ) -> Result<Self, $crate::event::vocabulary::field::ReadFault> {
                $( let mut $field = None; )*
                let mut extra = $crate::event::vocabulary::Extra::new();
                for (name, value) in object.members() {
                    match &*name.to_utf8_lossy() {
                        $( $key => $field = Some(value), )*
                        other if tag == Some(other) => {}
                        _ => extra.push(name, value),
                    }
                }
                Ok(Self { $( $field: $crate::event::vocabulary::field::member($key, $field)?, )* extra })
            }

            fn write_members<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(
                    if !$crate::event::vocabulary::field::Field::is_missing(&self.$field) {
                        map.serialize_entry($key, &self.$field)?;
                    }
                )*
                self.extra.write_members(map)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::event::vocabulary::field::Record::write_members(self, &mut map)?;
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::event::vocabulary::field::deserialize(deserializer)
            }
        }
    };
}

/// An enum over the kinds that the member `tag` names, and every other kind as its text.
macro_rules! open_set {
    (
        $(#[$meta:meta])*
        $name:ident by $tag:literal { $( $(#[$variant_meta:meta])* $variant:ident($payload:ty) = $kind:literal, )* }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant($payload), )*
            /// Any other kind, kept as written. A plugin reads its own with [`OpenSet::read`].
            ///
            /// [`OpenSet::read`]: crate::event::OpenSet::read
            Other($crate::event::JsonText),
        }

        impl $name {
            /// The name of the kind; empty when the value names none.
            #[must_use]
            pub fn kind(&self) -> std::borrow::Cow<'_, str> {
                match self {
                    $( Self::$variant(_) => std::borrow::Cow::Borrowed($kind), )*
                    Self::Other(text) => $crate::event::vocabulary::open_set::tag_of(text, $tag),
                }
            }
        }

        impl $crate::event::vocabulary::open_set::sealed::Sealed for $name {}

        impl $crate::event::vocabulary::OpenSet for $name {
            const TAG: &'static str = $tag;
            const KNOWN: &'static [&'static str] = &[$($kind),*];

            fn from_other(text: $crate::event::JsonText) -> Self {
                Self::Other(text)
            }

            fn other(&self) -> Option<&$crate::event::JsonText> {
                match self {
                    Self::Other(text) => Some(text),
                    _ => None,
                }
            }
        }

        impl $crate::event::vocabulary::field::Field for $name {
            fn from_json(
                value: $crate::event::JsonRef<'_>,
            ) -> Result<Self, $crate::event::vocabulary::field::ReadFault> {
                use $crate::event::vocabulary::field::Record as _;
                let kind = value.get($tag).and_then(|v| v.as_str()).map(|name| name.to_utf8_lossy());
                match kind.as_deref() {
                    $( Some($kind) => <$payload>::from_members(value, Some($tag)).map(Self::$variant), )*
                    _ => Ok(Self::Other($crate::event::JsonText::of_checked(value))),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                use $crate::event::vocabulary::field::Record as _;
                match self {
                    $(
                        Self::$variant(payload) => {
                            let mut map = serializer.serialize_map(None)?;
                            map.serialize_entry($tag, $kind)?;
                            payload.write_members(&mut map)?;
                            map.end()
                        }
                    )*
                    Self::Other(text) => text.serialize(serializer),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::event::vocabulary::field::deserialize(deserializer)
            }
        }
    };
}
