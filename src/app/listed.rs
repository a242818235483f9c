//! Enums with a list of their variants.

/// Declares an enum without data, with `ALL`, the list of its variants in declaration order, which cannot omit any.
macro_rules! listed {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident,)* }) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];
        }
    };
}

pub(super) use listed;
